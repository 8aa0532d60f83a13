"""A ttl that several Reservers work out, each by its own clock, is one reservation."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from reserver.cluster.pod import Pod
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.reservations.digest import near_digests
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref
from reserver.scheduling.bind import judge_bind
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.edits import Edit
from tests.builders import NAMESPACE, NOW, held, node, pod, state_of

KEY = Ref(NAMESPACE, "store", "k")
NAMED = 'owners: [{pod: {name: owner}}]\nnode: worker-1\nresources: {cpu: "4"}\n'
MATCHED = NAMED.replace("pod: {name: owner}", "selector: {matchLabels: {app: web}}")
WEB = {"app": "web"}


class Sidecar:
    """A Reserver with its own view and its own clock."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.state = state_of(node("worker-1", cpu="4"), now=now)
        self.store = ConfigMapCache(self.state.ledger, lambda: self.now, lambda *_: None)

    def sees(self, text: str | None, revision: int, *, listed: bool = False) -> None:
        metadata = Metadata(
            name="store", namespace=NAMESPACE, uid="u", resource_version=str(revision)
        )
        data = {} if text is None else {"k": text}
        deque(self.store.put(ConfigMapObject(metadata, data), listed=listed), maxlen=0)

    def edit(self) -> Edit | None:
        return self.store.due_edit(KEY, self.now)

    def bind(self, asking: Pod, revision: int) -> Pod:
        self.state.pod_seen(asking)
        verdict = judge_bind(asking, "worker-1", self.state, self.now)
        assert verdict.refusal is None
        self.state.assume(asking, "worker-1", verdict.claims)
        self.state.confirm(asking.uid)
        claims = frozenset(verdict.claims)
        assert claims
        return replace(asking, node="worker-1", claims=claims, revision=revision)

    def is_tidy(self) -> bool:
        over = self.edit()
        return held(self.state, "worker-1") == 0 and over is not None and over.value is None


@pytest.fixture
def owner() -> Pod:
    return replace(pod("owner", cpu="4", labels=WEB), revision=5)


@pytest.mark.parametrize("text", [NAMED, MATCHED], ids=["named", "matched"])
@pytest.mark.parametrize("ttl", ["ttl: 1h\n", "ttl: 3s\n", "", "ttl: 24h\n"])
@pytest.mark.parametrize("apart", [0.04, 1.0, -1.0])
@pytest.mark.parametrize("stamps", ["leader", "other", "nobody"])
@pytest.mark.parametrize("stamped_before", [True, False])
def test_a_claim_counts_for_whoever_worked_out_the_ttl_in_another_second(
    text: str, ttl: str, apart: float, stamps: str, owner: Pod, *, stamped_before: bool
) -> None:
    leader, other = Sidecar(NOW + 0.98), Sidecar(NOW + 0.98 + apart)
    for each in (leader, other):
        each.sees(text + ttl, 10)
    bound = leader.bind(owner, revision=11)
    stamp = {"leader": leader, "other": other}.get(stamps)
    edit = stamp.edit() if stamp else None
    for each in (leader, other):
        if not stamped_before:
            each.state.pod_seen(bound)
        if edit is not None and edit.value is not None:
            each.sees(edit.value, 12)
        if stamped_before:
            each.state.pod_seen(bound)
    assert leader.is_tidy()
    assert other.is_tidy()


@pytest.mark.parametrize("apart", [0, 1, 5, 30])
@pytest.mark.parametrize("is_stamped", [True, False])
@pytest.mark.parametrize("pods_first", [True, False])
def test_a_start_counts_the_claim_of_who_worked_it_out_before(
    apart: float, owner: Pod, *, is_stamped: bool, pods_first: bool
) -> None:
    before, between = Sidecar(NOW), Sidecar(NOW + apart)
    text = MATCHED + "ttl: 1h\n"
    for each in (before, between):
        each.sees(text, 10)
    bound = before.bind(owner, revision=11)
    stamp = between.edit()
    assert stamp is not None
    written = stamp.value if is_stamped else text
    start = Sidecar(NOW + apart)
    if pods_first:
        start.state.pod_seen(bound, listed=True)
    start.sees(written, 12, listed=True)
    if not pods_first:
        start.state.pod_seen(bound, listed=True)
    assert start.is_tidy()


@pytest.mark.parametrize("apart", [5, 31, 3600])
def test_the_same_for_a_successor_inherits_no_claim(apart: float, owner: Pod) -> None:
    """The predecessor still runs when an equal reservation is written at the same ref."""
    one = Sidecar(NOW)
    one.sees(MATCHED + "ttl: 1h\n", 10)
    bound = one.bind(owner, revision=11)
    one.state.pod_seen(bound)
    one.sees(None, 12)
    one.now += apart
    one.sees(MATCHED + "ttl: 1h\n", 20)
    assert held(one.state, "worker-1") == 4000
    one.state.pod_seen(replace(bound, revision=30))
    assert held(one.state, "worker-1") == 4000


def test_another_expiry_that_is_written_as_a_moment_is_another_reservation(owner: Pod) -> None:
    one = Sidecar(NOW)
    one.sees(MATCHED + 'expiresAt: "2035-01-01T00:00:00Z"\n', 10)
    bound = one.bind(owner, revision=11)
    one.state.pod_seen(bound)
    one.sees(MATCHED + 'expiresAt: "2035-01-01T00:00:01Z"\n', 12)
    assert held(one.state, "worker-1") == 4000


def test_one_that_has_expired_is_not_continued_by_the_same(owner: Pod) -> None:
    one = Sidecar(NOW)
    one.sees(MATCHED + "ttl: 10s\n", 10)
    bound = one.bind(owner, revision=11)
    one.state.pod_seen(bound)
    one.now += 11
    one.sees(MATCHED + "ttl: 10s", 20)
    assert held(one.state, "worker-1") == 4000
    assert one.state.ledger.phase(KEY) is Phase.ACTIVE


def test_digests_are_those_that_claims_name_already() -> None:
    """Claims on running pods were written by earlier versions."""
    one = Sidecar(NOW)
    one.sees(NAMED + "ttl: 1h\n", 10)
    known = one.state.ledger.get(KEY)
    assert known is not None
    assert known.digest == "27d0c1f97995358f"
    assert len(near_digests(known)) == 61
    assert known.digest in near_digests(known)
