from datetime import timedelta

import pytest
from google.protobuf import json_format

from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.grpc import catalogue, documents
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ReservationState
from reserver.stores.codec import lifetime_codec, spec_codec
from reserver.stores.configmap.entries import read_key
from reserver.v1 import reservation_pb2 as pb
from tests.builders import NOW, ref

OWNER = pb.Owner(pod=pb.PodOwner(name="web-0", namespace="shop"))
HOLDS = ReservationState(Phase.ACTIVE, is_backed=True)


def spec(**more: object) -> pb.ReservationSpec:
    whole = {"owners": [OWNER], "node": "worker-1", "resources": {"cpu": "2"}, **more}
    return pb.ReservationSpec(**whole)  # type: ignore[arg-type]  # each its own type


def test_what_is_sent_is_what_is_stored() -> None:
    alike = {
        "owners": [
            {"pod": {"name": "a"}},
            {"controller": {"kind": "ReplicaSet", "name": "b"}},
            {"selector": {"matchLabels": {"app": "c"}}},
        ],
        "resources": {"cpu": "500m"},
        "slots": 3,
        "startsAt": "2031-01-01T00:00:00Z",
        "reusable": True,
    }
    placement = {
        "nodeSelector": {"zone": "a"},
        "topologySpreadConstraints": [{"maxSkew": 1, "share": 0.5}],
    }
    sent = alike | {
        "placement": placement | {"strategy": "STRATEGY_SPREAD"},
        "policy": "POLICY_REQUIRE",
        "ttl": "3600s",
    }
    message = json_format.ParseDict(sent, pb.ReservationSpec())
    written = documents.write(message, NOW, "r-1")
    assert written == alike | {
        "placement": placement | {"strategy": "spread"},
        "policy": "Require",
        "expiresAt": "2030-03-17T18:46:40Z",
        "requestId": "r-1",
    }
    assert '"maxSkew":1.0' not in documents.encode(written)


@pytest.mark.parametrize(
    ("lifetime", "written"),
    [
        ({}, {"expiresAt": "2030-03-18T17:46:40Z"}),
        ({"ttl": timedelta(0)}, {"ttl": 0}),
        ({"ttl": timedelta(minutes=1)}, {"expiresAt": "2030-03-17T17:47:40Z"}),
        ({"ttl": timedelta(milliseconds=500)}, {"expiresAt": "2030-03-17T17:46:40Z"}),
    ],
)
def test_a_lifetime_is_stored_as_its_end(
    lifetime: dict[str, object], written: dict[str, object]
) -> None:
    stored = documents.write(spec(**lifetime), NOW)
    assert {name: stored[name] for name in ("ttl", "expiresAt") if name in stored} == written


@pytest.mark.parametrize(
    "place", [ref("a"), Ref.of_object("shop", "a"), Ref("shop", "store", "worker-1", "shop/web-0")]
)
def test_what_is_stored_is_shown_as_it_was_sent(place: Ref) -> None:
    sent = spec(policy=pb.POLICY_REQUIRE, slots=2, ttl=timedelta(0))
    text = documents.encode(documents.write(sent, NOW, "r-1"))
    stored = spec_codec.read(documents.write(sent, NOW), ref("a"), NOW)
    shown = catalogue.show(stored, text, HOLDS, {"u": PodName("shop", "web-0")})
    assert shown.spec == sent
    assert (shown.name, shown.status.claims[0].pod) == ("a", "shop/web-0")
    assert documents.request_id_of(text) == "r-1"
    assert documents.unshown(text) == {"requestId": "r-1"}
    assert catalogue.parse_id(str(place)) == place


def test_what_people_write_in_yaml_is_shown() -> None:
    text = "owners: [{pod: {name: web-0}}]\nresources: {cpu: 2, memory: 1Gi}\nnode: worker-1\n"
    (reservation,) = read_key(ref("a"), text, NOW).reservations
    shown = catalogue.show(reservation, text, HOLDS, {})
    assert shown.spec.resources == {"cpu": "2", "memory": "1Gi"}
    assert shown.spec.expires_at.seconds == NOW + lifetime_codec.DEFAULT_TTL_S
    assert (shown.spec.slots, shown.spec.policy) == (1, pb.POLICY_PREFER)


@pytest.mark.parametrize("text", ["a/b[d]", "a/b/c/d", "a/b/c[d", "a//c", "[d]"])
def test_what_is_neither_a_name_nor_an_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="write NAME, NAMESPACE/CONFIGMAP/KEY or"):
        catalogue.parse_id(text)
    assert catalogue.parse_id("plain") is None


def test_times_that_no_calendar_has_are_named() -> None:
    bad = spec()
    bad.expires_at.seconds = 10**15
    with pytest.raises(InvalidInput, match=r"^expiresAt: .* check its times"):
        documents.write(bad, NOW)
    with pytest.raises(InvalidInput, match="ttl: -1e-06 seconds are out of range"):
        documents.write(spec(ttl=timedelta(microseconds=-1)), NOW)
    both = spec(ttl=timedelta(1))
    both.expires_at.seconds = int(NOW)
    with pytest.raises(InvalidInput, match="ttl: cannot be set together with expiresAt"):
        documents.write(both, NOW)
