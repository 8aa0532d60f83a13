"""Which CapacityBuffers there are, and for how long."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from typing import Any

import pytest

from reserver.cluster.pod import Controller, Pod
from reserver.config import Settings
from reserver.errors import ConfigurationError
from reserver.kube.api.client import MERGE_PATCH, ApiClient
from reserver.kube.loops.buffer_writer import MOST_A_TURN, MOST_POD_BYTES, check_served
from reserver.kube.loops.buffers import AFTER_S, Buffers
from reserver.pacer import Pacer
from reserver.reservations.reservation import Reservation
from reserver.scheduling.buffers import MOST_BUFFERS
from reserver.wire.capacitybuffer import name_for
from reserver.wire.k8s.objects import Metadata
from tests.builders import NOW, node, parts, pod, reservation, state_of
from tests.unit.kube.clocks import ManualTime, worked_off
from tests.unit.kube.fakes import NO_ANSWER, ScriptedClient, refused

WAITS = reservation("waits", node="", cpu="3")
FREE = dataclasses.replace(node("a", cpu="4"), is_kept=False)


class Api(ApiClient):
    """An API server that keeps what is applied.

    Attributes:
        objects: what is there, by path.
        writes: the verbs and paths that were asked for.
        reads: the paths that were read.
        refusal: what it answers, None to do as asked.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.refusal: Exception | None = None

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> bytes:
        assert content_type == "application/apply-patch+yaml"
        self._answer(f"apply {path}")
        self.objects[path.partition("?")[0]] = json.loads(json.dumps(body))
        return json.dumps({"metadata": {"name": "made", "uid": "u2"}}).encode()

    async def get(self, path: str, params: object = None) -> bytes:
        assert params is None
        self.reads.append(path)
        found = self.objects.get(path)
        if found is None:
            raise refused(404, "NotFound")
        return json.dumps(found).encode()

    async def delete(self, path: str, options: object) -> bytes:
        assert options
        self._answer(f"delete {path}")
        if self.objects.pop(path, None) is None:
            raise refused(404, "NotFound")
        return b"{}"

    def _answer(self, asked: str) -> None:
        self.writes.append(asked)
        if self.refusal is not None:
            raise self.refusal


class Desk:
    """A state, an API server, and what writes buffers."""

    def __init__(self, *there: Reservation, is_new: bool = False) -> None:
        self.time, self.api = ManualTime(), Api()
        self.let_go: list[str] = []
        self.state = state_of(*there)
        self.buffers = Buffers(
            self.api,
            lambda: NOW,
            lambda _: (Metadata(name="store", uid="u1"), "ConfigMap"),
            self.time,
            let_go=self.let_go.append,
        )
        if not is_new:
            for each in there:
                self.buffers.touched(each.ref)

    def put(self, made: Reservation) -> None:
        self.state.ledger.put(made)
        self.buffers.touched(made.ref)

    def drop(self, made: Reservation) -> None:
        self.state.ledger.drop(made.ref)
        self.buffers.touched(made.ref)

    def place(self, made: Reservation, on: str) -> None:
        self.state.ledger.place(made.ref, parts({on: made.slots}))
        self.buffers.touched(made.ref)

    def refuse(self, made: Pod, *names: str, note: str = "") -> None:
        """Have a pod refused because of holds, as the API server and the watch have it."""
        where = f"/api/v1/namespaces/{made.name.namespace}/pods/{made.name.name}"
        metadata = {"name": made.name.name, "uid": made.uid, "annotations": {"note": note}}
        self.api.objects[where] = {"metadata": metadata, "spec": {"nodeSelector": {"pool": "p"}}}
        self.state.pod_seen(dataclasses.replace(made, is_refused=True))
        self.state.judged(made, names, waits=True)
        self.buffers.refused(made.uid)

    def bind(self, made: Pod, on: str) -> None:
        self.state.judged(made, [on], waits=False)
        self.state.assume(made, on, ())
        self.buffers.binding(made, on)

    async def work(self, seconds: float = AFTER_S) -> list[str]:
        """Let time pass; return which buffers there are then, by their reservation."""
        self.time.now += seconds
        await self.buffers.look(self.state, Pacer())
        await self.turn()
        while self.buffers.writer.backlog.depth:
            await self.turn()
        return sorted(
            next(iter(each["metadata"]["annotations"].values())).rsplit("/", 1)[1]
            for path, each in self.api.objects.items()
            if "capacitybuffers" in path
        )

    async def turn(self) -> None:
        """Let the writer have a turn."""
        await self.buffers.writer.turn(Pacer())
        await self.write()

    async def write(self) -> None:
        """Let the writer write what has its turn."""
        queue = self.buffers.writer.queue
        await worked_off(queue.run(self.buffers.writer._write, 4), queue)

    def template(self) -> Any:
        return next(each for path, each in self.api.objects.items() if "podtemplates" in path)


async def test_a_reservation_that_waits_has_a_buffer_until_its_node_is_kept() -> None:
    desk = Desk(WAITS)
    assert await desk.work(0) == []
    assert await desk.work() == ["waits"]
    assert desk.template()["metadata"]["ownerReferences"][0]["uid"] == "u2"
    desk.state.node_seen(FREE)
    desk.place(WAITS, "a")
    assert await desk.work() == ["waits"]
    desk.state.node_seen(dataclasses.replace(FREE, is_kept=True))
    desk.buffers.changed()
    assert await desk.work() == []
    assert desk.buffers.writer.writes == 2


async def test_one_that_finds_its_place_at_once_costs_nothing() -> None:
    desk = Desk(WAITS)
    desk.state.node_seen(FREE)
    desk.place(WAITS, "a")
    assert await desk.work() == []
    desk.put(reservation("other", node="", cpu="1"))
    desk.drop(reservation("other", node="", cpu="1"))
    assert await desk.work() == []
    assert desk.api.writes == []


async def test_a_buffer_goes_with_its_reservation() -> None:
    desk = Desk(WAITS)
    await desk.work()
    desk.drop(WAITS)
    assert await desk.work() == []
    assert len(desk.buffers.writer) == 1  # Until the watch shows it.
    desk.buffers.writer.gone((WAITS.ref.namespace, name_for(WAITS.ref)))
    desk.api.writes.clear()
    await desk.work()
    assert (desk.api.writes, len(desk.buffers.writer)) == ([], 0)


async def test_a_buffer_is_written_again_only_when_what_it_says_changes() -> None:
    desk = Desk(WAITS)
    await desk.work()
    desk.api.writes.clear()
    desk.buffers.touched(WAITS.ref)
    await desk.work()
    assert desk.api.writes == []
    desk.state.node_seen(FREE)
    desk.put(reservation("held", node="a", cpu="2"))
    await desk.work()
    assert len(desk.api.writes) == 2
    affinity = desk.template()["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["a"]


async def test_a_buffer_that_somebody_deletes_comes_back() -> None:
    desk = Desk(WAITS)
    await desk.work()
    desk.api.objects.clear()
    desk.buffers.writer.gone((WAITS.ref.namespace, name_for(WAITS.ref)))
    assert await desk.work() == ["waits"]


async def test_a_successor_deletes_what_nobody_needs_and_goes_on_with_the_rest() -> None:
    other = reservation("other", node="", cpu="3")
    before = Desk(WAITS, other)
    assert await before.work() == ["other", "waits"]
    desk = Desk(WAITS, is_new=True)
    desk.api.objects = before.api.objects
    for each in (WAITS, other):
        desk.buffers.writer.seen((each.ref.namespace, name_for(each.ref)))
    await desk.buffers.begin(desk.state, Pacer())
    assert await desk.work() == ["waits"]
    assert len([each for each in desk.api.writes if each.startswith("apply")]) == 2


async def test_a_successor_leaves_the_buffer_of_a_node_that_is_not_kept_yet() -> None:
    before = Desk(WAITS)
    await before.work()
    desk = Desk(WAITS, is_new=True)
    desk.api.objects = before.api.objects
    desk.state.node_seen(FREE)
    desk.state.ledger.place(WAITS.ref, parts({"a": 1}))
    desk.buffers.writer.seen((WAITS.ref.namespace, name_for(WAITS.ref)))
    await desk.buffers.begin(desk.state, Pacer())
    assert await desk.work() == ["waits"]
    assert desk.api.writes == []


async def test_a_namespace_has_so_many_buffers_and_the_next_when_one_goes() -> None:
    many = [reservation(f"r{number:03}", node="", cpu="3") for number in range(MOST_BUFFERS + 2)]
    desk = Desk(*many)
    names = [each.ref.key for each in many]
    assert await desk.work() == names[:-2]
    desk.drop(many[0])
    assert await desk.work() == names[1:-1]


HELD = reservation("held", node="a", cpu="4")
STRANGER = pod("stranger", cpu="3")


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
    desk.buffers.changed()
    assert await desk.work() == ["stranger"]
    desk.buffers.binding(STRANGER, "new")
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
    assert ("new" in desk.buffers.guests, desk.let_go) == (True, [])
    desk.state.ledger.drop(HELD.ref)
    desk.buffers.changed()
    await desk.work()
    assert ("new" in desk.buffers.guests, desk.let_go) == (False, ["new"])


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
    desk.buffers.changed()
    await desk.work()
    assert desk.let_go == []
    desk.state.forget(pods[1].uid)
    desk.buffers.changed()
    await desk.work()
    assert (desk.let_go, len(desk.buffers.guests)) == (["new"], 0)


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
    assert desk.buffers.guests.uids() == (() if is_over else ("uid-app-new",))
    assert sorted(desk.let_go) == (["a", "new"] if is_over else [])


async def test_a_pod_that_came_without_a_buffer_is_no_guest() -> None:
    desk = Desk(HELD)
    desk.state.node_seen(FREE)
    desk.bind(STRANGER, "a")
    desk.refuse(dataclasses.replace(STRANGER, uid="u2"), "a")
    desk.bind(dataclasses.replace(STRANGER, uid="u2"), "a")  # It had no time to come by one.
    assert len(desk.buffers.guests) == 0


async def test_a_pod_that_is_too_long_to_copy_is_read_once_and_has_no_buffer() -> None:
    desk = Desk(HELD)
    desk.state.node_seen(FREE)
    desk.refuse(STRANGER, "a", note="x" * MOST_POD_BYTES)
    for _ in range(3):
        desk.buffers.changed()
        assert await desk.work() == []
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
        desk.buffers.changed()
    assert await desk.work() == []
    assert (desk.api.reads, desk.api.writes, desk.buffers.writer.backlog.depth) == ([], [], 0)


async def test_a_pod_that_another_scheduler_binds_has_none_any_more() -> None:
    desk = Desk(HELD)
    desk.state.node_seen(FREE)
    desk.refuse(STRANGER, "a")
    assert await desk.work() == ["stranger"]
    desk.state.pod_seen(dataclasses.replace(STRANGER, node="new"))
    desk.buffers.changed()
    assert await desk.work() == []


async def test_a_pod_that_kube_scheduler_refuses_by_itself_after_all_has_none_any_more() -> None:
    desk = Desk(HELD)
    desk.state.node_seen(FREE)
    desk.refuse(STRANGER, "a")
    assert await desk.work() == ["stranger"]
    desk.state.judged(STRANGER, ["new"], waits=False)
    desk.state.pod_seen(STRANGER)
    desk.buffers.changed()
    assert await desk.work() == []


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
    desk.buffers.changed()
    assert await desk.work() == []


async def test_a_successor_goes_on_with_the_buffers_of_pods() -> None:
    before = Desk(HELD)
    before.state.node_seen(FREE)
    before.refuse(STRANGER, "a")
    assert await before.work() == ["stranger"]
    desk = Desk(HELD, is_new=True)
    desk.api.objects = before.api.objects
    desk.state.node_seen(FREE)
    desk.state.pod_seen(dataclasses.replace(STRANGER, is_refused=True), listed=True)
    desk.buffers.writer.seen((STRANGER.name.namespace, name_for(STRANGER.uid)))
    await desk.buffers.begin(desk.state, Pacer())
    assert await desk.work() == ["stranger"]
    assert [each for each in desk.api.writes if each.startswith("delete")] == []
    desk.state.ledger.drop(HELD.ref)
    desk.buffers.changed()
    assert await desk.work() == []


async def test_what_cannot_be_written_is_tried_again_later_and_later() -> None:
    desk = Desk(WAITS)
    desk.api.refusal = refused(403, "Forbidden")
    assert await desk.work() == []
    desk.buffers.touched(WAITS.ref)
    desk.api.writes.clear()
    await desk.work(0.01)
    assert desk.api.writes == []
    desk.api.refusal = None
    assert await desk.work(60) == ["waits"]


async def test_serve_is_refused_where_there_are_no_capacity_buffers() -> None:
    with pytest.raises(ConfigurationError, match="install the CRD"):
        await check_served(ScriptedClient(refused(404, "NotFound")))
    await check_served(ScriptedClient({"items": []}))
    await check_served(ScriptedClient(NO_ANSWER))  # It will be there, or not.


def test_buffers_are_refused_where_the_nodes_that_they_bring_would_be_removed() -> None:
    with pytest.raises(ConfigurationError, match="needs --keep-held-nodes"):
        Settings(capacity_buffers=True)
    assert Settings(capacity_buffers=True, keep_held_nodes=True).capacity_buffers
