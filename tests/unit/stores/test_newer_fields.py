"""A store with fields that only a newer version has, and with misspelt ones (ADR 70)."""

import json
from typing import Any

import pytest
from msgspec import inspect

from reserver.cluster.labels import NOTHING
from reserver.errors import InvalidInput
from reserver.k8s.lease import LeaseObject
from reserver.maintenance.codec import WindowStatusObject
from reserver.moves.podmove_status import StatusObject
from reserver.patches.status_codec import PatchStatus
from reserver.reservations.owner import OwnerRule
from reserver.reservations.placement import Part
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Ref
from reserver.stores.archive import ArchivedReservation
from reserver.stores.codec import newer_fields
from reserver.stores.codec.placement_codec import StrictPart
from reserver.stores.codec.spec_codec import EntrySpec
from reserver.stores.configmap.companion_codec import CompanionObject
from reserver.stores.configmap.status_codec import EntryStatus
from reserver.stores.object.codec import ReservationStatus
from reserver.stores.object.entries import read_object
from reserver.stores.object.status_codec import recorded
from reserver.stores.quota_codec import QuotaStatus
from tests.builders import NOW, held
from tests.unit.stores import companions
from tests.unit.stores.companions import answer
from tests.unit.stores.objects import World, condition
from tests.unit.stores.test_object_cache import made

REF = Ref("reserver-system", "reservations", "web")
POD = {"pod": {"name": "web-0", "namespace": "shop"}}
RESTRICTED = {"selector": {"matchLabels": {"app": "web"}, "namespace": "shop"}, "tier": "gold"}


def spec(**more: Any) -> dict[str, Any]:
    return {"owners": [POD], "node": "worker-1", "resources": {"cpu": 2}} | more


@pytest.mark.parametrize(
    ("more", "ignored"),
    [
        pytest.param({"tenancy": 1}, "tenancy", id="of the spec"),
        pytest.param({"tenancy": {"node": []}, "x" * 300: 1}, "tenancy, xxxxx", id="long"),
        pytest.param(
            {"node": "", "placement": {"zonal": True, "strategy": "spread"}},
            "placement.zonal",
            id="of the placement",
        ),
        pytest.param({f"zzz{n}": n for n in range(9)}, "zzz0, zzz1, zzz2, zzz3, zzz4 and 4 more",
                     id="many"),
    ],
)  # fmt: skip
def test_a_field_of_a_newer_version_is_ignored_and_named(more: Any, ignored: str) -> None:
    found, said = newer_fields.read(spec(**more), REF, NOW)
    plain = {name: part for name, part in more.items() if name == "node"}
    if "placement" in more:
        plain["placement"] = {"strategy": "spread"}
    assert found == newer_fields.read(spec(**plain), REF, NOW)[0]
    assert said.startswith(f"ignored, because this version does not know the field: {ignored}")


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"slot": 3}, id="misspelt"),
        pytest.param({"expiresat": "2030-01-01T00:00:00Z"}, id="in lower case"),
        pytest.param({"nodeSelector": {"a": "b"}}, id="in the wrong place"),
        pytest.param({"nodeName": "worker-1"}, id="as pods have it"),
        pytest.param({"cpu": "2"}, id="beside resources"),
        pytest.param({"owners": [POD | {"replces": {"uid": "u"}}]}, id="of an owner"),
        pytest.param({"owners": [POD | {"namespace": "shop"}]}, id="of an owner, misplaced"),
        pytest.param(
            {"node": "", "placement": {"nodeselector": {"a": "b"}}}, id="of the placement"
        ),
        pytest.param({"tenancy": 1, "slot": 3}, id="beside a newer one"),
    ],
)
def test_a_misspelt_field_is_refused_unless_it_was_in_force(more: Any) -> None:
    with pytest.raises(InvalidInput, match=r"is not a field|is not known") as refusal:
        newer_fields.read(spec(**more), REF, NOW)
    assert "tenancy" not in refusal.value.problem
    assert newer_fields.read(spec(**more), REF, NOW, was_in_force=True)[1]


def test_so_many_names_are_of_no_newer_version_unless_it_was_in_force() -> None:
    more = {f"zzz{n}": n for n in range(65)}
    with pytest.raises(InvalidInput, match="65 names of fields are not known"):
        newer_fields.read(spec(**more), REF, NOW)
    assert newer_fields.read(spec(**more), REF, NOW, was_in_force=True)[1]
    owners = [POD, *([RESTRICTED] * 999)]
    assert "and 994 more" in newer_fields.read(spec(owners=owners), REF, NOW)[1]


def test_who_else_is_wrong_is_refused_as_ever() -> None:
    wrongs: list[dict[Any, Any]] = [{"slots": 0}, {"owners": []}, {"owners": [{}]}, {1: 2}]
    for wrong in wrongs:
        with pytest.raises(InvalidInput):
            newer_fields.read(spec(tenancy=1) | wrong, REF, NOW, was_in_force=True)
    with pytest.raises(InvalidInput):
        newer_fields.read([], REF, NOW)


def test_as_an_owner_with_such_a_field_nobody_claims() -> None:
    both, said = newer_fields.read(spec(owners=[POD, RESTRICTED]), REF, NOW)
    assert [str(each) for each in both.owners] == ["shop/web-0"]
    assert both.rules == (OwnerRule(namespace="shop", selector=NOTHING),)
    assert said.endswith("owners[1].tier; an owner with such a field claims nothing")
    for owner in (
        RESTRICTED,
        {"team": "shop"},
        {"pod": {"tier": 1}},
        {"pod": {"name": []}, "x": 1},
    ):
        alone, _ = newer_fields.read(spec(owners=[owner]), REF, NOW)
        assert not alone.owners
        assert [rule.selector for rule in alone.rules] == [NOTHING]


async def test_a_key_holds_says_what_is_ignored_and_warns_once() -> None:
    world = companions.World()
    world.put(web=companions.spec(tenancy=1), typo=companions.spec(slot=3))
    assert held(world.state, "worker-1") == 2000
    _, written = await world.write(companions.MISSING, answer(1))
    assert companions.said(written, "web")["phase"] == "Active"
    assert "tenancy" in companions.said(written, "web")["ignored"]
    assert companions.said(written, "typo")["phase"] == "Invalid"
    assert [reason for reason, _ in world.warned] == ["FieldsIgnored"]


async def test_what_a_newer_version_had_in_force_holds_on_whatever_its_fields() -> None:
    text = companions.spec(slotsPerPod=3, owners=[RESTRICTED])
    newer = json.dumps({"phase": "Active", "backed": True, "digest": "ofthenewer"})
    world = companions.World()
    world.state.ledger.quotas = Quotas(is_open=False)  # As at a start.
    world.put(web=text)
    assert held(world.state, "worker-1") == 0, "like slots, so it may be misspelt"
    world.client.script = [answer(1, {"web": newer})]
    await world.writer.recall(world.state.ledger)
    for _ in world.state.ledger.open():
        pass
    assert held(world.state, "worker-1") == 2000
    (known,) = world.store.all_known()
    assert known.entries.ignored
    assert not known.entries.beyond
    # Reserver or a user extends the entry: the field is still of a newer version.
    world.put(web=text.replace("{", '{"expiresAt": "2099-01-01T00:00:00Z",', 1))
    assert held(world.state, "worker-1") == 2000
    world.put(web=text.replace("{", '{"slotz": 2,', 1))
    assert held(world.state, "worker-1") == 0


async def test_an_object_holds_and_says_what_is_ignored() -> None:
    world = World()
    world.put(made(tenancy=1, slotsPerPod=2))
    (status,) = await world.write()
    valid = condition(status, "Valid")
    assert valid[:2] == ("True", "FieldsIgnored")
    assert "tenancy, slotsPerPod" in valid[2]
    assert held(world.state, "worker-1") == 2000
    assert world.warned == [("FieldsIgnored", valid[2])]
    world.put(made(status=status, tenancy=1, slotsPerPod=2, revision=2))
    assert not await world.write()


def strict(kind: inspect.Type) -> set[type]:
    """Return the structs within a type that refuse unknown fields."""
    found = set[type]()
    if isinstance(kind, inspect.StructType):
        found = {kind.cls} if kind.forbid_unknown_fields else found
        found |= {each for field in kind.fields for each in strict(field.type)}
    for part in ("item_type", "value_type"):
        found |= strict(getattr(kind, part)) if hasattr(kind, part) else set()
    return found.union(*map(strict, getattr(kind, "types", ())))


@pytest.mark.parametrize(
    "kind",
    [
        ReservationStatus,
        EntryStatus,
        CompanionObject,
        ArchivedReservation,
        QuotaStatus,
        PatchStatus,
        WindowStatusObject,
        StatusObject,
        LeaseObject,
    ],
)
def test_what_reserver_writes_for_itself_may_have_fields_of_a_newer_version(kind: type) -> None:
    """Else a rollback would drop all that a status records."""
    assert not strict(inspect.type_info(kind))
    assert strict(inspect.type_info(EntrySpec)) > {StrictPart}


def test_the_place_and_the_claims_of_a_newer_version_are_kept() -> None:
    part = {"node": "worker-2", "slots": 3, "zone": "a"}
    claim = {"pod": "shop/a", "uid": "u1", "node": "worker-2", "at": "2030-01-01T00:00:00Z"}
    status = {"phase": "Active", "observedGeneration": 1, "claimed": 1, "conditions": []}
    status |= {"placements": [part], "claims": [claim | {"seat": 1}], "zones": 1}
    placed = made(node="", slots=3, status=status)
    (kept,) = read_object(placed, NOW, "reserver-system").reservations
    assert kept.placed == (Part("worker-2", 3),)
    found = placed.stored_status()
    assert found is not None
    assert recorded(found) == {"u1": "worker-2"}
    written, said = newer_fields.read(spec(node="", slots=3, placements=[part]), REF, NOW)
    assert written.placed == kept.placed
    assert said.endswith("placements[0].zone")
