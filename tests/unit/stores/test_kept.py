"""A hold from before a bound or a quota goes on; in either store (ADR 64)."""

import json
from typing import Any

import pytest

from reserver.k8s.objects.limits import HOME, KEPT, TENANT, SpecLimits
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import Quotas
from reserver.stores.configmap import entries as entries_module
from reserver.stores.object import entries as object_module
from reserver.stores.object.entries import read_object
from tests.builders import NOW, held
from tests.cpu import MOST_S, least_cpu_s
from tests.unit.stores import companions
from tests.unit.stores.companions import answer
from tests.unit.stores.objects import World, condition
from tests.unit.stores.test_object_cache import made

NEVER = SpecLimits(*(10**9,) * 9, owners_anywhere=True)
"""Of a version that had no bounds."""


def owners(number: int, **of: str) -> list[dict[str, Any]]:
    return [{"pod": {"name": f"web-{index}", **of}} for index in range(number)]


BEYOND = {
    "owners": {"owners": owners(150)},
    "two thousand owners": {"owners": owners(2000)},
    "slots": {"slots": 1001},
    "an owner elsewhere": {"owners": owners(1, namespace="elsewhere")},
    "resources": {"resources": {f"example.com/{index}": 1 for index in range(17)}},
    "labels": {"owners": [{"selector": {"matchLabels": {f"k{i}": "v" for i in range(129)}}}]},
    "bytes": {"owners": owners(1), "description": "", "raw_bytes": TENANT.spec_bytes},
}
"""A tenant's Reservation that new bounds refuse."""


async def said_before(monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any]) -> Any:
    """Return the status that a version without bounds wrote."""
    world = World()
    with monkeypatch.context() as before:
        before.setattr(object_module, "limits_at", lambda *_: NEVER)
        world.put(made(**spec))
    (status,) = await world.write()
    assert status["phase"] in {"Active", "Pending"}
    return {field: said for field, said in status.items() if said is not None}


def spelled_out(spec: dict[str, Any]) -> dict[str, Any]:
    size = spec.pop("raw_bytes", 0)
    return spec | ({"owners": owners(size // 300, namespace="shop")} if size else {})


@pytest.mark.parametrize("spec", BEYOND.values(), ids=BEYOND)
async def test_an_object_beyond_a_bound_holds_on_and_says_so(
    monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any]
) -> None:
    spec = spelled_out(dict(spec))
    status = await said_before(monkeypatch, spec)
    new, kept = World(), World()
    new.put(made(**spec))
    (refused,) = await new.write()
    assert refused["phase"] == "Invalid"
    for revision in (2, 3):  # And after the next start.
        kept.put(made(**spec, status=status, revision=revision))
        written = await kept.write()
        if written:
            (status,) = ({k: v for k, v in each.items() if v is not None} for each in written)
        assert status["phase"] in {"Active", "Pending"}
        limit = condition(status, "WithinLimits")
        assert limit[:2] == ("False", "ExceedsBounds")
        assert limit[2] == condition(refused, "Valid")[2]
        assert kept.warned.count(("ExceedsBounds", limit[2])) == (revision == 2)
        if spec.get("resources") is None and spec.get("placement") is None:
            assert held(kept.state, "worker-1") == 2000 * spec.get("slots", 1)
        kept = World()


async def test_an_edit_of_it_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"owners": owners(150)}
    status = await said_before(monkeypatch, spec)
    edited = made(owners=owners(151), status=status, revision=2)
    metadata = type(edited.metadata)(
        **{field: getattr(edited.metadata, field) for field in edited.metadata.__struct_fields__}
        | {"generation": 2}
    )
    world = World()
    world.put(type(edited)(metadata, edited.spec, edited.status))
    (status,) = await world.write()
    assert status["phase"] == "Invalid"


@pytest.mark.parametrize(
    "change",
    [{"phase": "Invalid"}, {"observedGeneration": 0}, {"claims": 7}],
    ids=["it was invalid", "it is of another spec", "somebody else wrote it"],
)
async def test_only_what_was_in_force_holds_on(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    spec: dict[str, Any] = {"owners": owners(150)}
    status = await said_before(monkeypatch, spec) | change
    world = World()
    world.put(made(**spec, status=status, revision=2))
    assert held(world.state, "worker-1") == 0


def test_what_is_kept_is_read_in_a_moment() -> None:
    """A read is one step, which must not hold the event loop."""
    status: Any = {
        "phase": "Active", "observedGeneration": 1, "claimed": 0, "placements": [], "claims": [],
        "conditions": [],
    }  # fmt: skip
    selectors = [{"selector": {"matchLabels": {"app": f"w{i}"}}} for i in range(KEPT.owners)]
    item = made(owners=selectors, status=status)
    assert read_object(item, NOW, "home").beyond
    assert least_cpu_s(lambda _: item, lambda each: read_object(each, NOW, "home")) < MOST_S
    more = made(owners=[*selectors, *owners(1)], status=status)
    assert not read_object(more, NOW, "home").reservations


async def test_a_key_beyond_a_bound_holds_on_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    text = companions.spec(owners=owners(HOME.owners + 500))
    with monkeypatch.context() as before:
        before.setattr(entries_module, "HOME", NEVER)
        before.setattr(entries_module._read_one, "__defaults__", (NEVER,))
        _, said = await companions.written(web=text)
    assert json.loads(said["web"])["phase"] == "Active"
    world = companions.World()
    world.state.ledger.quotas = Quotas(is_open=False)  # As at a start.
    world.put(web=text, other=companions.spec(owners=owners(HOME.owners + 1)))
    assert held(world.state, "worker-1") == 0
    world.client.script = [answer(1, said)]
    await world.writer.recall(world.state.ledger)
    for _ in world.state.ledger.open():
        pass
    assert held(world.state, "worker-1") == 2000
    (written,) = await world.write(answer(2))
    web = companions.said(written, "web")
    assert web["phase"] == "Active"
    assert "1500 entries are too many" in web["exceeds"]
    assert companions.said(written, "other")["phase"] == "Invalid"
    assert [reason for reason, _ in world.warned] == ["ExceedsBounds"]
    world.put(web=companions.spec(owners=owners(HOME.owners + 501)))
    assert held(world.state, "worker-1") == 0


@pytest.mark.parametrize("kind", ["object", "configmap"])
async def test_what_exceeds_a_quota_says_so_until_it_does_not(kind: str) -> None:
    world: Any = World() if kind == "object" else companions.World()
    small, none = Quota(name="team", hard={"held.cpu": 1000}), Quota(name="team", hard={})
    if kind == "object":
        world.put(made())
        await world.write()
    else:
        world, _ = await companions.written(web=companions.spec())
    said = []
    for quota in (small, none):
        world.state.ledger.quotas.limit("shop", (quota,))
        for _ in world.state.ledger.admit("shop"):
            pass
        if kind == "object":
            (status,) = await world.write()
            said += [c["reason"] for c in status["conditions"] if c["type"] == "WithinLimits"]
        else:
            (request,) = await world.write(answer(3))
            entry = companions.said(request, "web")
            said += ["ExceedsQuota"] if entry.get("exceeds", "").startswith("exceeded") else []
        assert held(world.state, "worker-1") == 2000
        assert world.state.ledger.quotas.exceeding_count() == (quota is small)
    assert said == ["ExceedsQuota"]
    assert [reason for reason, _ in world.warned] == ["ExceedsQuota"]
