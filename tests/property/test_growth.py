"""Resizes, forged reviews among them, next to an API server that keeps the real pods.

Two namespaces have pods of the same names. A forged review changes no answer; a review that
passed is protected until the watch shows its result.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reserver.cluster.pod import Pod, PodName
from reserver.errors import InvalidInput
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.state import State
from reserver.webhook import handlers
from reserver.webhook.handlers import Resizes
from reserver.webhook.review import read_request
from tests.builders import NOW, Ready, node, pod, reservation
from tests.property.resizing import (
    NAMES,
    NAMESPACES,
    OFFERED,
    RESOURCES,
    WORKERS,
    Passed,
    forged,
    huge,
    names,
    namespaces,
    outcome,
    quantities,
    review,
    sizes,
    workers,
)

handlers.PATIENCE_S = 0.002  # Nothing is shown while a machine waits.


class ResizesBesideApiServer(RuleBasedStateMachine):
    """Pods grow and shrink, are bound by Reserver and by others; reviews are made up between."""

    def __init__(self) -> None:
        super().__init__()
        self.revision = 0
        self.state = State()
        self.state.ledger.advance(NOW)
        self.state.is_complete = True
        self.pods: dict[PodName, Pod] = {}
        self.unseen: deque[Pod] = deque()
        self.passed: list[Passed] = []
        self.held: dict[Ref, str] = {}
        self.excused: set[tuple[str, str]] = set()
        self.keys = 0
        self.strangers = 0
        for worker in WORKERS:
            self.state.node_seen(node(worker, cpu=str(OFFERED), memory=str(OFFERED)))

    @initialize(sizes=st.lists(sizes, min_size=4, max_size=4), at=st.lists(workers, min_size=4))
    def begin(self, sizes: list[dict[str, int]], at: list[str]) -> None:
        every = [(namespace, each) for namespace in NAMESPACES for each in NAMES]
        for (namespace, each), size, worker in zip(every, sizes, at, strict=False):
            small = {name: str(min(amount, 2)) for name, amount in size.items()}
            made = pod(each, namespace=namespace, uid=f"{namespace}-{each}", **small)  # type: ignore[arg-type]
            self._write(replace(made, node=worker))
        while self.unseen:
            self.watch_shows()

    def _write(self, changed: Pod) -> None:
        self.revision += 1
        changed = replace(changed, revision=self.revision)
        self.pods[changed.name] = changed
        self.unseen.append(changed)

    # What the API server does.

    @precondition(lambda self: self.unseen)
    @rule()
    def watch_shows(self) -> None:
        self.state.pod_seen(self.unseen.popleft())

    @rule(namespace=namespaces, name=names)
    def something_else_of_a_pod_changes(self, namespace: str, name: str) -> None:
        self._write(self.pods[PodName(namespace, name)])

    @rule(namespace=namespaces, name=names, size=sizes)
    def somebody_resizes(self, namespace: str, name: str, size: dict[str, int]) -> None:
        before = self.pods[PodName(namespace, name)]
        if self._ask(review(before, size)) is None:
            is_seen = self.state.pods[before.name].revision == before.revision
            growth = self.state.pending_resizes.of(before) if is_seen else None
            wanted = quantities(size)
            self.passed.append(Passed(before, wanted, growth))
            for resource in RESOURCES:
                more = wanted[resource] - before.requests.get(resource, 0)
                counted = growth.counted.get(resource, 0) if growth else 0
                if more > counted:  # Nobody holds any: it is the kubelet's to defer.
                    assert not self.state.ledger.held_on(before.node).get(resource)
                    self.excused.add((before.node, resource))

    @precondition(lambda self: self.passed)
    @rule(data=st.data())
    def a_resize_is_written(self, data: st.DataObject) -> None:
        """Only on the revision that was judged."""
        done = self.passed.pop(data.draw(st.integers(0, len(self.passed) - 1)))
        now = self.pods[done.pod.name]
        if now.revision == done.pod.revision:
            self._write(replace(now, requests=done.requests))

    @precondition(lambda self: self.passed)
    @rule(data=st.data())
    def a_quota_refuses_a_resize(self, data: st.DataObject) -> None:
        self.passed.pop(data.draw(st.integers(0, len(self.passed) - 1)))

    # Reserver.

    @rule(worker=workers, size=sizes, owner=namespaces)
    def reserve(self, worker: str, size: dict[str, int], owner: str) -> None:
        self.keys += 1
        fits = all(
            amount * (1000 if name == "cpu" else 1) <= self._free(worker, name)
            for name, amount in size.items()
        )
        if fits and any(size.values()):
            held = {name: str(amount) for name, amount in size.items() if amount}
            made = reservation(f"r{self.keys}", node=worker, owners=(f"{owner}-owner",), **held)  # type: ignore[arg-type]
            self.state.ledger.put(made)
            self.held[made.ref] = worker

    @rule(worker=workers, size=sizes)
    def a_stranger_is_bound(self, worker: str, size: dict[str, int]) -> None:
        self.strangers += 1
        requests = {name: str(amount) for name, amount in size.items()}
        self.revision += 1
        made = pod(f"s{self.strangers}", **requests)  # type: ignore[arg-type]
        stranger = replace(made, revision=self.revision)
        self.state.pod_read(stranger)
        if any(quantities(size)[each] > self._room(worker, each) for each in RESOURCES):
            return  # kube-scheduler does not ask.
        if judge_bind(stranger, worker, self.state, NOW).refusal is None:
            self.state.assume(stranger, worker, ())
            self.state.confirm(stranger.uid)
            self._write(replace(stranger, node=worker))

    @rule(worker=workers, size=sizes)
    def another_scheduler_binds(self, worker: str, size: dict[str, int]) -> None:
        """Into room that is unused by the pods that the watch shows; it ignores pending resizes."""
        self.strangers += 1
        wanted = quantities(size)
        if all(wanted[each] <= self._unused(worker, each) for each in RESOURCES):
            made = pod(f"s{self.strangers}", node=worker)
            self._write(replace(made, requests=wanted))
            self.excused |= {(worker, each) for each in RESOURCES if wanted[each]}
            while self.unseen:
                self.watch_shows()

    @rule(namespace=namespaces, name=names)
    def time_is_up(self, namespace: str, name: str) -> None:
        """After the longest request of an API server: a resize is written, or never will be."""
        now = self.pods[PodName(namespace, name)]
        growth = self.state.pending_resizes.of(now)
        if growth is not None:
            self.passed = [each for each in self.passed if each.pod.name != now.name]
            while self.unseen:
                self.watch_shows()
            self.state.ungrow(growth)

    # Whoever reaches the port.

    @rule(
        namespace=namespaces,
        name=names,
        size=huge,
        wrong=forged,
        dry_run=st.booleans(),
    )
    def somebody_makes_a_review_up(
        self,
        namespace: str,
        name: str,
        size: dict[str, int],
        wrong: dict[str, str],
        *,
        dry_run: bool,
    ) -> None:
        shown = self.state.pods[PodName(namespace, name)]
        made_up = review(shown, size, dry_run=dry_run, **wrong)
        if not dry_run and self._is_of_a_pod(made_up):
            return
        before = self._told()
        self._ask(made_up)
        assert self._told() == before

    def _is_of_a_pod(self, made_up: dict[str, Any]) -> bool:
        """Return whether a forged review equals a real one by chance."""
        own, spec = made_up["oldObject"]["metadata"], made_up["oldObject"]["spec"]
        shown = self.state.pods.get(PodName(own["namespace"], own["name"]))
        said = own["uid"], own["resourceVersion"], spec["nodeName"]
        return shown is not None and said == (shown.uid, str(shown.revision), shown.node)

    def _ask(self, asked: dict[str, Any]) -> str | None:
        request = read_request(json.dumps({"request": asked}).encode())
        try:
            return outcome(Resizes(self.state, lambda: NOW, Ready()).judge(request))
        except InvalidInput:
            return "cannot be read"

    # What has to be so.

    def _free(self, worker: str, resource: str) -> int:
        found = self.state.snapshot.amounts(worker, resource)
        return found.allocatable - found.requested - found.held

    def _room(self, worker: str, resource: str) -> int:
        found = self.state.snapshot.amounts(worker, resource)
        return found.allocatable - found.requested

    def _unused(self, worker: str, resource: str) -> int:
        """Return the free amount next to the holds, by the pods that the watch has shown."""
        found = self.state.snapshot.amounts(worker, resource)
        shown = (each for each in self.state.pods.values() if each.node == worker)
        taken = sum(each.requests.get(resource, 0) for each in shown)
        assumed = (self.state.assumption(each.uid) for each in self.state.pods.values())
        taken += sum(
            each.pod.requests[resource] for each in assumed if each and each.node == worker
        )
        return found.allocatable - found.held - taken

    def _told(self) -> tuple[dict[Ref, bool], dict[tuple[str, str], int]]:
        """Return the values that answers depend on: backing of holds, and free amounts."""
        ledger, short = self.state.ledger, ShortNodes.of(self.state.snapshot)
        backed = {each.ref: short.status(each, ledger).is_backed for each, _ in ledger}
        free = {(at, what): self._free(at, what) for at in WORKERS for what in RESOURCES}
        return backed, free

    @invariant()
    def nothing_is_let_into_held_room(self) -> None:
        """By all written pods, whether or not the watch has shown them."""
        for worker in WORKERS:
            on = [each for each in self.pods.values() if each.node == worker]
            for resource in RESOURCES:
                taken = sum(each.requests.get(resource, 0) for each in on)
                found = self.state.snapshot.amounts(worker, resource)
                if found.held and (worker, resource) not in self.excused:
                    assert taken + found.held <= found.allocatable

    @invariant()
    def holds_are_backed_unless_their_room_is_taken(self) -> None:
        """A growth that passed and is not written takes no room of earlier holds."""
        backed, _ = self._told()
        for ref, worker in self.held.items():
            if not any((worker, resource) in self.excused for resource in RESOURCES):
                assert backed[ref]

    @invariant()
    def no_more_is_taken_than_there_is_unless_the_watch_shows_it(self) -> None:
        for worker in WORKERS:
            for resource in RESOURCES:
                if self._unused(worker, resource) >= 0:
                    assert self._free(worker, resource) >= 0

    @invariant()
    def what_cannot_be_written_any_more_counts_no_longer(self) -> None:
        for shown in self.state.pods.values():
            growth, counted = (
                self.state.pending_resizes.of(shown),
                self.state.snapshot.counted(shown.uid),
            )
            if growth is None:
                assert counted is None or counted.pod.requests == shown.requests
            else:
                assert growth.pod.revision == shown.revision

    @invariant()
    def what_passed_and_may_still_be_written_has_its_room(self) -> None:
        for each in self.passed:
            shown = self.state.pods[each.pod.name]
            if each.growth is None or shown.revision != each.pod.revision:
                continue
            for resource in RESOURCES:
                found = self.state.snapshot.amounts(shown.node, resource)
                counted = self.state.snapshot.counted(shown.uid)
                assert counted is not None
                wanted = each.requests[resource]
                has = counted.pod.requests.get(resource, 0)
                assert has >= wanted or found.requested >= found.allocatable - found.held


TestResizesBesideApiServer = ResizesBesideApiServer.TestCase
