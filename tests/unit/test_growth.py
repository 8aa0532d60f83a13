"""Objects that tenants write and delete leave no memory behind."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from reserver.extender.protocol import ExtenderBindingArgs
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.reservations import admission
from tests.unit.k8s.fakes import refused
from tests.unit.reachable import SPARE_ENTRIES, sizes
from tests.unit.whole import NODE_PATH, NODES, OBJECTS, PODS, QUOTAS, STORES, Whole, spec

pytestmark = pytest.mark.long


async def reservations_come_and_go(whole: Whole, number: int) -> None:
    for path, placed in ((OBJECTS, {"node": NODES[number % 4]}), (OBJECTS, {}), (OBJECTS, {})):
        raw = whole.show(path, f"r{number}", "team", spec=spec(number, **placed))
        await whole.work()
        whole.end(path, raw)
    data = {f"k{number}": json.dumps(spec(number, node=NODES[0])), "broken": f"{{}}{number}"}
    raw = whole.show(STORES, "store", "reserver-system", data=data)
    await whole.work()
    raw = whole.show(STORES, "store", "reserver-system", data={})
    await whole.work()
    whole.end(STORES, raw)


async def one_entry_is_edited_again_and_again(whole: Whole, number: int) -> None:
    edited = spec(number, slots=1 + number % 3, node=NODES[number % 4])
    whole.show(OBJECTS, "same", "team", spec=edited, uid="same")
    data = {"same": json.dumps(edited)}
    whole.show(STORES, "same", "reserver-system", data=data, uid="same-store")
    await whole.work()


def pod_of(number: int, node: str = "", **more: Any) -> dict[str, Any]:
    container = {"name": "a", "resources": {"requests": {"cpu": "6"}}}
    metadata = {"labels": {"app": f"a{number}"}, **more}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": [container]}}


async def pods_wait_and_go(whole: Whole, number: int) -> None:
    held = whole.show(OBJECTS, f"h{number}", "team", spec=spec(0, node=NODES[0]))
    raw = whole.show(PODS, f"p{number}", "shop", **pod_of(number))
    pod = decode(PodObject, raw).value()
    names = [*NODES, *(f"gone-{number}-{more}" for more in range(5))]
    whole.extender.carry_out(whole.extender.filter(pod, names))
    await whole.extender.preempt(pod, dict.fromkeys(NODES, (f"victim-{number}",)))
    whole.end(PODS, raw)
    whole.end(OBJECTS, held)
    await whole.work()


async def pods_are_bound_and_go(whole: Whole, number: int) -> None:
    written = spec(number, node=NODES[number % 4])
    held = whole.show(OBJECTS, f"h{number}", "team", spec=written)
    name = f"owner-{number}"
    whole.show(PODS, name, "team", **pod_of(number))
    args = ExtenderBindingArgs(name, "team", f"uid-team-{name}", NODES[number % 4])
    assert (await whole.extender.bindings.bind(args)).refusal is None
    claimed = {"annotations": {"reserver.io/claims": json.dumps([f"x{number}", "y"])}}
    raw = whole.show(PODS, name, "team", **pod_of(number, NODES[number % 4], **claimed))
    await whole.work()
    whole.end(PODS, raw)
    whole.end(OBJECTS, held)
    await whole.work()


async def bindings_fail(whole: Whole, number: int) -> None:
    raw = whole.show(PODS, f"p{number}", "shop", **pod_of(number))
    args = ExtenderBindingArgs(f"p{number}", "shop", f"uid-shop-p{number}", f"no-node-{number}")
    whole.client.failure = refused(404)
    assert (await whole.extender.bindings.bind(args)).refusal is not None
    whole.client.failure = None
    whole.end(PODS, raw)
    whole.now += 10.0
    await whole.work()


async def writes_are_refused(whole: Whole, number: int) -> None:
    whole.client.failure = refused(403)
    raw = whole.show(OBJECTS, f"r{number}", "team", spec=spec(number))
    entry = json.dumps(spec(number))
    store = whole.show(STORES, f"s{number}", "reserver-system", data={f"k{number}": entry})
    await whole.work()
    await whole.work()
    whole.end(OBJECTS, raw)
    whole.end(STORES, store)
    whole.client.failure = None
    whole.now += 60.0
    await whole.work()
    await whole.work()


async def nodes_come_and_go(whole: Whole, number: int) -> None:
    name = f"spot-{number}"
    node = whole.show(NODE_PATH, name, "", status={"allocatable": {"cpu": "4", "pods": "110"}})
    held = whole.show(OBJECTS, f"r{number}", "team", spec=spec(number, node=name))
    await whole.work()
    whole.end(NODE_PATH, node)
    whole.end(OBJECTS, held)
    await whole.work()


async def quotas_come_and_go(whole: Whole, number: int) -> None:
    namespace = f"team-{number}"
    quota = {"hard": {"reservations": 1}}
    limit = whole.show(QUOTAS, "quota", namespace, spec=quota, metadata={"generation": 1})
    held = [whole.show(OBJECTS, f"r{n}", namespace, spec=spec(n)) for n in range(3)]
    await whole.work()
    assert whole.state.ledger.quotas.used(namespace)["reservations"] == 1
    for raw in held:
        whole.end(OBJECTS, raw)
    whole.end(QUOTAS, limit)
    await whole.work()


@pytest.mark.parametrize(
    "churn",
    [
        reservations_come_and_go,
        one_entry_is_edited_again_and_again,
        pods_wait_and_go,
        pods_are_bound_and_go,
        bindings_fail,
        writes_are_refused,
        nodes_come_and_go,
        quotas_come_and_go,
    ],
)
async def test_every_container_is_back_at_its_size(
    churn: Callable[[Whole, int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_SPARE_ENTRIES", SPARE_ENTRIES)
    async with asyncio.TaskGroup() as tasks:
        whole = Whole(tasks)
        sending = tasks.create_task(whole.assembly.requeue.run())
        for number in range(20):
            await churn(whole, number)
        before = sizes((whole.assembly, whole.extender))
        for number in range(20, 120):
            await churn(whole, number)
        after = sizes((whole.assembly, whole.extender))
        sending.cancel()
    assert {path: size for path, size in after.items() if size > before.get(path, 0)} == {}
