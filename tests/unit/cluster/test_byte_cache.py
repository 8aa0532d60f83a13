"""The cache is bounded by bytes, and broken entries cost little."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from reserver.cluster.byte_cache import ByteCache, reckoned
from reserver.k8s.objects import constraints, pods, requests
from reserver.k8s.objects.limits import POD
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.reservations.reservation import Ref
from reserver.stores.configmap.entries import read_key
from tests.builders import NOW

Written = dict[str, Any]
CACHES: dict[str, ByteCache[Any, Any]] = {
    "demands": constraints._KNOWN,
    "labels": pods._LABELS,
    "controllers": pods._CONTROLLERS,
    "requests": requests._REQUESTS,
}


NUMBER = "<number>"


def written(spec: Written, metadata: Written) -> bytes:
    """Return the bytes of a pod with `NUMBER` in them."""
    own = {"name": f"p{NUMBER}", "namespace": "shop", "uid": f"u{NUMBER}"}
    return json.dumps({"metadata": own | metadata, "spec": spec}).encode()


def container(**fields: Any) -> Written:
    return {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}} | fields]}


def ports(number: int, kind: str) -> list[Written]:
    return [{kind: 1 + each, "protocol": "TCP"} for each in range(number)]


LARGE: dict[str, Callable[[str], tuple[Written, Written]]] = {
    "10,000 ports": lambda n: (container(ports=ports(10_000, f"containerPort{n}")), {}),
    "10,000 host ports": lambda n: (container(ports=ports(10_000, "hostPort"), name=f"c{n}"), {}),
    "as many host ports as are read": lambda n: (
        container(ports=[{"hostPort": 1 + each, "name": f"p{n}"} for each in range(POD.things)]),
        {},
    ),
    "long labels": lambda n: (container(), {"labels": {f"k{n}": "v" * 16_000}}),
    "labels over the bound": lambda n: (container(), {"labels": {f"k{n}": "v" * 100_000}}),
    "owner references": lambda n: (
        container(),
        {"ownerReferences": [{"kind": "Job", "name": f"{n}" * 10, "uid": "u" * 50}] * 100},
    ),
    "a long affinity": lambda n: (
        container() | {"nodeSelector": {f"k{n}-{each}": "v" * 60 for each in range(60)}},
        {},
    ),
    "many resources": lambda n: (
        container(resources={"requests": {f"example.com/{n}-{e}": "1" for e in range(1500)}}),
        {},
    ),
}


@pytest.mark.parametrize("what", LARGE)
def test_what_large_pods_leave_behind_is_bounded(what: str) -> None:
    for cache in CACHES.values():
        cache.clear()
    pod = written(*LARGE[what](NUMBER))
    for number in range(60):
        decode(PodObject, pod.replace(NUMBER.encode(), str(number).encode())).value()
    for cache in CACHES.values():
        assert cache.size <= 16 * 2**20
        for key, _ in cache.values():
            assert sum(map(len, _bytes(key))) <= 2**20
    ported = {key for key, _ in CACHES["requests"].values()}
    assert not any(b"containerPort" in key or b"hostPort" in key for key in ported)


def _bytes(key: Any) -> list[bytes]:
    if isinstance(key, bytes):
        return [key]
    return [part for each in key for part in (_bytes(each) if not isinstance(each, str) else [])]


def test_the_oldest_is_forgotten_first_and_what_is_too_large_is_not_remembered() -> None:
    memory: ByteCache[str, int] = ByteCache(3000)
    memory.put("a", 1, 1000)
    memory.put("b", 2, 1000)
    assert memory.get("a") == 1
    memory.put("c", 3, 1500)
    assert (memory.get("a"), memory.get("b"), memory.get("c")) == (1, None, 3)
    memory.put("d", 4, 3001)
    assert memory.get("d") is None
    assert memory.size == 2500
    assert reckoned(100) > 100


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "x",
        '{"owners": 7}',
        '{"owners": [], "resources": {}}',
        '{"nonsense": 1}',
        '{"owners": [], "resources": {"cpu": "1"}, "placement": {"nodeSelecto": 1}}',
        "[{}]",
    ],
)
def test_a_broken_entry_costs_no_look_at_types(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = Ref("shop", "store", "worker-1")
    read_key(ref, text, NOW)

    def never(_: object) -> Any:
        raise AssertionError("what is the same for all entries is found out once")

    monkeypatch.setattr(msgspec.structs, "fields", never)
    monkeypatch.setattr(msgspec.inspect, "type_info", never)
    assert read_key(ref, text, NOW).problems
