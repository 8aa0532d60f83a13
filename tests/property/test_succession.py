"""Whatever a watch and lists show, only pods that come later may claim a replacement's seat."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.pod import Controller, Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.owner import OwnerRule, Replaced, ReplacementStanding, Succession
from tests.builders import NAMESPACE, node, pod

WEB = Controller("ReplicaSet", "web")
_NODE = node("worker-1", cpu="4")
LEAVES = pod("web-0", node="worker-1", controller=WEB)
RULE = OwnerRule(namespace=NAMESPACE, controller=WEB, replaces=Replaced(LEAVES.uid))


@given(
    before=st.integers(0, 4),
    after=st.integers(0, 4),
    broken_at=st.integers(0, 12),
    lost=st.integers(0, 12),
    order=st.randoms(),
)
def test_only_pods_that_come_later_may_claim(
    before: int, after: int, broken_at: int, lost: int, order: Random
) -> None:
    """Play writes in order; a watch shows them, but for a gap that a list closes, in any order."""
    siblings = [pod(f"web-{n + 1}", controller=WEB) for n in range(before + after)]
    going = replace(LEAVES, terminating=True)
    writes = [LEAVES, *siblings[:before], going, *siblings[before:], *siblings]
    shown = [replace(each, revision=n + 1) for n, each in enumerate(writes)]
    snapshot, known = Snapshot(), dict[str, Pod]()
    snapshot.set_node(_NODE)
    succession = Succession(snapshot)

    def see(each: Pod, *, listed: bool) -> None:
        elsewhere = each.name._replace(namespace="blog")  # With the same names.
        twin = replace(each, name=elsewhere, uid=f"twin-{each.uid}")
        for one in (each, twin):
            succession.seen(one, known.get(one.uid), listed=listed)
            known[one.uid] = one
            if one.node:
                snapshot.count(one, one.node)

    gap = range(max(1, broken_at), max(1, broken_at) + lost)
    for n, each in enumerate(shown):
        if n not in gap:
            see(each, listed=False)
        elif n + 1 not in gap:
            latest = {seen.uid: seen for seen in shown[: n + 1]}
            listed = list(latest.values())
            order.shuffle(listed)
            for seen in listed:
                see(seen, listed=True)
        is_blind = n in gap and n + 1 in gap
        if not is_blind:
            _check(succession, shown[: n + 1], siblings[before:], is_exact=not lost)
    assert len(shown) - 1 in gap or all(
        succession.standing(RULE, each) is ReplacementStanding.MAY_CLAIM
        for each in siblings[before:]
    )


def _check(succession: Succession, written: list[Pod], later: list[Pod], *, is_exact: bool) -> None:
    has_left = any(each.terminating for each in written)
    for each in written:
        if each.node:
            continue
        may = succession.standing(RULE, each) is ReplacementStanding.MAY_CLAIM
        is_later = each.uid in {one.uid for one in later}
        assert not may or has_left
        assert may or not is_later
        assert may == is_later or not is_exact
