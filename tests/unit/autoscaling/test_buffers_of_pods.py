"""CapacityBuffers for pods that only holds keep out, and the nodes that came by them."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from reserver.autoscaling.buffer_writer import MOST_A_TURN, MOST_POD_BYTES
from reserver.autoscaling.codec import name_for
from reserver.autoscaling.controller import AFTER_S
from reserver.base.pacer import Pacer
from reserver.cluster.pod import Controller
from reserver.scheduling.buffers import MOST_BUFFERS
from tests.builders import node, pod, reservation
from tests.unit.autoscaling.buffering import FREE, Desk

HELD = reservation("held", node="a", cpu="4")

STRANGER = pod("stranger", cpu="3")


async def refused() -> Desk:
    """Return a desk with the buffer of a pod that only a hold keeps out."""
    desk = Desk(HELD)
    desk.state.node_seen(FREE)
    desk.refuse(STRANGER, "a")
    assert await desk.work() == ["stranger"]
    return desk


async def test_a_pod_that_only_holds_keep_out_has_a_buffer_until_it_is_bound() -> None:
    desk = Desk(HELD)
    desk.state.node_seen(FREE)
    await desk.work()
    desk.refuse(STRANGER, "a")
    assert await desk.work(0) == []
    assert await desk.work() == ["stranger"]
    shown = desk.template()["template"]["spec"]
    assert shown["nodeSelector"] == {"pool": "p"}
    assert shown["containers"][0]["resources"]["requests"] == {"cpu": "3"}
    desk.state.node_seen(node("new", cpu="4"))
    desk.state.judged(STRANGER, ["new"], waits=False)
    assert await desk.changed() == ["stranger"]
    desk.buffers.on_pod_assumed(STRANGER, "new")
    await desk.write()  # No pass and no turn is waited for.
    assert await desk.work(0) == []
    assert desk.buffers.writer.writes == 2


async def test_the_node_of_a_pod_that_came_by_a_buffer_stays_while_a_held_one_looks_free() -> None:
    desk = Desk(HELD)
    for each in (FREE, node("new", cpu="4")):
        desk.state.node_seen(each)
    desk.refuse(STRANGER, "a")
    await desk.work()
    desk.bind(STRANGER, "new")
    await desk.work()
    assert ("new" in desk.buffers.buffered_pods, desk.heard.nodes) == (True, [])
    desk.state.ledger.drop(HELD.ref)
    await desk.changed()
    assert ("new" in desk.buffers.buffered_pods, desk.heard.nodes) == (False, ["new"])


async def test_a_node_is_let_go_once_its_last_guest_is_gone_and_when_a_binding_fails() -> None:
    desk = Desk(HELD)
    for name in ("a", "new"):
        desk.state.node_seen(node(name, cpu="8"))
    pods = [pod(name, cpu="2") for name in ("p1", "p2")]
    for each in pods:
        desk.refuse(each, "a")
    assert await desk.work() == ["p1", "p2"]
    for each in pods:
        desk.bind(each, "new")
    desk.state.confirm(pods[0].uid)
    desk.state.pod_gone(pods[0].name)
    await desk.changed()
    assert desk.heard.nodes == []
    desk.state.forget(pods[1].uid)
    await desk.changed()
    assert (desk.heard.nodes, len(desk.buffers.buffered_pods)) == (["new"], 0)


@pytest.mark.parametrize("is_over", [False, True])
async def test_a_successor_keeps_the_node_of_a_guest(*, is_over: bool) -> None:
    desk = Desk(HELD, is_new=True)
    for name, is_kept in (("a", True), ("new", True), ("other", False)):
        desk.state.node_seen(dataclasses.replace(node(name, cpu="9"), is_kept=is_kept))
        for made in (
            pod(f"app-{name}", node=name, cpu="3"),
            pod(f"agent-{name}", node=name, cpu="1", controller=Controller("DaemonSet", "agent")),
        ):
            desk.state.pod_seen(made, listed=True)
    if is_over:
        desk.state.ledger.drop(HELD.ref)
    await desk.buffers.begin(desk.state, Pacer())
    await desk.work()
    assert desk.buffers.buffered_pods.uids() == (() if is_over else ("uid-app-new",))
    assert sorted(desk.heard.nodes) == (["a", "new"] if is_over else [])


async def test_a_pod_that_came_without_a_buffer_is_no_guest() -> None:
    desk = Desk(HELD)
    desk.state.node_seen(FREE)
    desk.bind(STRANGER, "a")
    desk.refuse(dataclasses.replace(STRANGER, uid="u2"), "a")
    desk.bind(dataclasses.replace(STRANGER, uid="u2"), "a")  # No time to get a buffer.
    assert len(desk.buffers.buffered_pods) == 0


async def test_a_pod_that_is_too_long_to_copy_is_read_once_and_has_no_buffer() -> None:
    desk = Desk(HELD)
    desk.state.node_seen(FREE)
    desk.refuse(STRANGER, "a", note="x" * MOST_POD_BYTES)
    for _ in range(3):
        assert await desk.changed() == []
    assert (len(desk.api.reads), desk.api.writes) == (1, [])


async def test_of_thousands_of_pods_one_namespace_has_so_many_buffers_and_another_its_own() -> None:
    held = reservation("held", node="a", cpu="4000")
    desk = Desk(held)
    desk.state.node_seen(node("a", cpu="4000", pods="10000"))
    for number in range(3_000):
        desk.refuse(pod(f"p{number:04}", cpu="1"), "a")
    desk.refuse(pod("other", namespace="other", cpu="1"), "a")
    found = await desk.work()
    assert (len(found), "other" in found) == (MOST_BUFFERS + 1, True)
    assert len(desk.api.reads) == MOST_BUFFERS + 1


async def test_one_hold_has_few_buffers_written_in_a_turn_of_each_namespace_as_many() -> None:
    desk = Desk(HELD)
    for name in ("a", "b"):
        desk.state.node_seen(node(name, cpu="4000", pods="10000"))
    desk.put(dataclasses.replace(HELD, resources={"pods": 1, "cpu": 4_000_000}))
    for number in range(300):
        desk.refuse(pod(f"p{number:03}", namespace=f"n{number % 4}", cpu="1"), "a", "b")
    assert len(await desk.work()) == 300
    for hold in (reservation("new", node="b", cpu="4000"), None):
        desk.api.writes.clear()
        if hold:
            desk.put(hold)
        else:
            desk.drop(reservation("new", node="b"))
        desk.time.now += AFTER_S
        await desk.buffers.look(desk.state, Pacer())
        await desk.turn()
        written = [path.split("/")[5] for path in desk.api.writes if "capacitybuffers" in path]
        assert len(desk.api.writes) == 2 * MOST_A_TURN  # Each with its PodTemplate.
        assert Counter(written) == dict.fromkeys(["n0", "n1", "n2", "n3"], MOST_A_TURN // 4)
    desk.api.writes.clear()
    await desk.work()
    assert desk.api.writes == []  # The others are right again.


async def test_what_comes_and_goes_before_its_turn_costs_no_call() -> None:
    desk = Desk(HELD)
    desk.state.node_seen(node("a", cpu="4000", pods="10000"))
    desk.put(dataclasses.replace(HELD, resources={"pods": 1, "cpu": 4_000_000}))
    for round_ in range(20):
        pods = [pod(f"p{round_}-{number}", cpu="1") for number in range(MOST_BUFFERS)]
        for each in pods:
            desk.refuse(each, "a")
        desk.time.now += AFTER_S
        await desk.buffers.look(desk.state, Pacer())
        for each in pods:
            desk.state.pod_gone(each.name)
        assert await desk.changed() == []
    assert (desk.api.reads, desk.api.writes, desk.buffers.writer.backlog.depth) == ([], [], 0)


async def test_a_pod_that_another_scheduler_binds_has_none_any_more() -> None:
    desk = await refused()
    desk.state.pod_seen(dataclasses.replace(STRANGER, node="new"))
    assert await desk.changed() == []


async def test_a_pod_that_kube_scheduler_refuses_by_itself_after_all_has_none_any_more() -> None:
    desk = await refused()
    desk.state.judged(STRANGER, ["new"], waits=False)
    desk.state.pod_seen(STRANGER)
    assert await desk.changed() == []


async def test_a_pod_that_is_gone_has_no_buffer() -> None:
    desk = Desk(HELD)
    desk.state.node_seen(FREE)
    desk.refuse(STRANGER, "a")
    desk.api.objects.clear()
    assert await desk.work() == []
    assert desk.api.writes == []
    desk.refuse(STRANGER, "a")
    await desk.work()
    desk.state.pod_gone(STRANGER.name)
    assert await desk.changed() == []


async def test_a_successor_goes_on_with_the_buffers_of_pods() -> None:
    before = await refused()
    desk = Desk(HELD, is_new=True)
    desk.api.objects = before.api.objects
    desk.state.node_seen(FREE)
    desk.state.pod_seen(dataclasses.replace(STRANGER, is_refused=True), listed=True)
    desk.buffers.writer.seen((STRANGER.name.namespace, name_for(STRANGER.uid)))
    await desk.buffers.begin(desk.state, Pacer())
    assert await desk.work() == ["stranger"]
    assert [each for each in desk.api.writes if each.startswith("delete")] == []
    desk.state.ledger.drop(HELD.ref)
    assert await desk.changed() == []
