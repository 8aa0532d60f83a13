"""The account of one reservation: its entries, claims and holds.

A reservation may be written at several refs while it is moved (docs/adr/0009). Its claims, its
holds and the place that Reserver chose belong to all refs, so they are kept once (docs/adr/0025).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import cast

from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.digest import is_mark, mark
from reserver.reservations.entry import NO_PEAK, NO_UNSURE, UNSEEN, Claimed, Entry, Peak, latest
from reserver.reservations.leaving import leaving_holds, turns_on, unwritten
from reserver.reservations.node_holds import Hold
from reserver.reservations.placement import Parts, clipped, compacted
from reserver.reservations.reservation import NOT_YET, Ref, Reservation, Written

# Shared, as most accounts have no claim. A write to it raises; `Account.give` replaces it.
_NO_CLAIMS = cast("dict[str, Claimed]", MappingProxyType({}))


@dataclass(slots=True, eq=False)
class Account:
    """One reservation, with its claims and holds.

    Attributes:
        reservation: the spec of the first entry, which represents all entries (`latest`).
        identity: the reservation's identity.
        order: the order of creation; later accounts have greater numbers.
        entries: the entries of all refs, the longest known first (`LedgerView.copies`).
        claimants: the pods that claimed a slot, by UID, or by mark if a record has only the mark.
        holds: the holds, one for each node.
        leaving: the holds on nodes that it leaves, until its new place is written.
        holds_more: it holds more than `left`: bindings in flight may fail.
        is_edited: the place was decided for an earlier version of the spec.
        obstacle: the reason for no place, or for an unwritten place; empty if unknown.
        is_faulty: an owner rule has raised an exception; no rule is evaluated any more.
        idle_since: since when no pod has a slot, in whole unix seconds; 0 while a pod has a slot,
            or if the reservation has no `releaseIfIdle`.
        peak: the most pods at a time of a reusable reservation, since this process began.
    """

    reservation: Reservation
    identity: str
    order: int
    entries: tuple[Entry, ...] = ()
    claimants: dict[str, Claimed] = field(default_factory=lambda: _NO_CLAIMS)
    holds: tuple[Hold, ...] = ()
    leaving: tuple[Hold, ...] = ()
    holds_more: bool = False
    is_edited: bool = False
    obstacle: str = ""
    is_faulty: bool = False
    idle_since: float = 0.0
    peak: Peak = NO_PEAK
    _by_node: dict[str, Hold] | None = None
    _is_placed: bool = False
    _marks: int = 0
    _left: tuple[dict[str, int], int] | None = None

    @property
    def refs(self) -> tuple[Ref, ...]:
        """The refs of the entries."""
        return tuple(entry.reservation.ref for entry in self.entries)

    def entry(self, ref: Ref) -> Entry:
        """Return the entry at a ref of this account."""
        return next(entry for entry in self.entries if entry.reservation.ref == ref)

    def written_in(self, namespace: str) -> int:
        """Return the number of entries in a namespace."""
        return sum(entry.reservation.ref.namespace == namespace for entry in self.entries)

    def put(self, entry: Entry) -> None:
        """Add an entry."""
        if entry not in self.entries:
            self.entries = (*self.entries, entry)

    def pop(self, ref: Ref) -> Entry:
        """Remove the entry at a ref; return the entry."""
        gone = self.entry(ref)
        self.entries = tuple(entry for entry in self.entries if entry is not gone)
        return gone

    @property
    def is_holding(self) -> bool:
        """Whether any hold has amounts."""
        return any(hold.amounts for hold in self.holds)

    def stand(self, since: Written, earlier: Mapping[str, Written]) -> None:
        """Create the holds, each with its turn in the order of its node's holds.

        Args:
            since: the turn on new nodes.
            earlier: the turns to keep, by node.
        """
        is_placed = not self.reservation.node
        self._hold(
            Hold(self.reservation.on(part), earlier.get(part.node, since), is_placed=is_placed)
            for part in self.reservation.parts
        )

    def succeed(self, admits: Callable[[Reservation], bool]) -> None:
        """Let the first entry represent all entries (`latest`); the turns stay."""
        self.reservation, self._left = latest(self.entries, admits), None
        by_node = self.by_node()
        for part in self.reservation.parts:
            by_node[part.node].reservation = self.reservation.on(part)

    def move(self, parts: Parts) -> Iterable[Hold]:
        """Place the reservation elsewhere, behind all holds there; return the holds that end.

        On nodes where it stays, or that it was about to leave, it keeps its turn.
        """
        for entry in self.entries:
            entry.reservation = replace(entry.reservation, placed=parts)
        self.reservation = replace(self.reservation, placed=parts)
        turns = turns_on((*self.leaving, *self.holds))
        before, holds = self.by_node(), []
        for part in parts:
            since = turns.get(part.node, NOT_YET)
            hold = before.pop(part.node, None) or Hold(self.reservation, since, is_placed=True)
            hold.reservation = self.reservation.on(part)
            holds.append(hold)
        self._hold(holds)
        ended = (*before.values(), *self.leaving)
        self.leaving = leaving_holds(unwritten(self.entries), turns)
        return ended

    def _hold(self, holds: Iterable[Hold]) -> None:
        self.holds, self._left = tuple(holds), None
        # A call for an owner looks up the hold on each candidate node; one hold needs no dict.
        self._by_node = self.by_node() if len(self.holds) > 1 else None
        # Read for each pod that records a claim.
        placed = sum(hold.reservation.slots for hold in self.holds)
        self._is_placed = placed >= self.reservation.slots

    def by_node(self) -> dict[str, Hold]:
        """Return the holds by node."""
        return {hold.reservation.node: hold for hold in self.holds}

    def hold_on(self, node: str) -> Hold | None:
        """Return the hold on a node; None if the reservation is not placed there."""
        if self._by_node is not None:
            return self._by_node.get(node)
        return next((hold for hold in self.holds if hold.reservation.node == node), None)

    def may_be_on(self, node: str) -> bool:
        """Return whether a slot may be on a node; a slot without a place may be on any."""
        return not self._is_placed or self.hold_on(node) is not None

    def recall(self, entry: Entry) -> bool:
        """Take the recorded claims of an entry that certainly belong to it.

        Drop the claims that certainly do not; return whether any claim was taken.
        """
        before = len(self.claimants)
        first, last = entry.written
        sure = {uid: each for uid, each in entry.unsure.items() if last <= each.known_at}
        for uid, claim in sure.items():
            if not is_mark(uid):
                known = self.claimants.get(self.claimant(uid), claim)
                self.give(uid, known.at, known.node or claim.node)
        marks = {uid for uid in sure if is_mark(uid)}
        for uid in marks - set(map(mark, self.claimants)) if marks else ():
            self.give(uid, sure[uid].at, sure[uid].node)
        if entry.unsure:
            unsure = {u: each for u, each in entry.unsure.items() if first <= each.known_at < last}
            entry.unsure = unsure or NO_UNSURE
        return len(self.claimants) > before

    def give(self, pod_uid: str, at: int, node: str) -> None:
        """Give a slot to a pod, with a resourceVersion and a node (empty if unknown)."""
        if self.claimants is _NO_CLAIMS:
            self.claimants = {}
        known = self.claimants.get(pod_uid) or self._unmarked(pod_uid)
        self.claimants[pod_uid] = claim = Claimed(at, node or (known.node if known else ""))
        if known is None:
            self._marks += is_mark(pod_uid)
            self._take_one(claim.node)
        elif known.node != claim.node:
            self._left = None

    def claimant(self, pod_uid: str) -> str:
        """Return a pod's key among the claimants: its mark if only that is there, else its UID."""
        if self._marks and pod_uid not in self.claimants and mark(pod_uid) in self.claimants:
            return mark(pod_uid)
        return pod_uid

    def _unmarked(self, pod_uid: str) -> Claimed | None:
        """Remove and return the claim under a pod's mark, for its UID to replace; else None."""
        known = self.claimants.pop(mark(pod_uid), None) if self._marks else None
        self._marks -= known is not None
        return known

    def _take_one(self, node: str) -> None:
        """Count one more claim: take a slot on its node, or recompute `left` if there is none."""
        if self._left is not None:
            left, _ = self._left
            node = self.reservation.node or node
            if left.get(node):
                left[node] -= 1
            else:
                self._left = None

    @property
    def idle_until(self) -> float:
        """The end by `releaseIfIdle`, in unix seconds; infinite without one, or while in use."""
        wait = self.reservation.release_if_idle
        return self.idle_since + wait if wait and self.idle_since else math.inf

    @property
    def ends_at(self) -> float:
        """The earlier of `expires_at` and `idle_until`, in unix seconds; infinite without both."""
        expires_at = self.reservation.expires_at
        return self.idle_until if expires_at is None else min(expires_at, self.idle_until)

    def take_over(self, other: Account) -> None:
        """Take over the claims, the peak and the idle time of another account."""
        self.idle_since = max(self.idle_since, other.idle_since)
        self.peak = max(self.peak, other.peak)
        for uid, claim in other.claimants.items():
            self.give(uid, *claim)

    def has_seen(self, pod_uid: str) -> bool:
        """Return whether a watch has confirmed a pod's claim."""
        known = self.claimants.get(self.claimant(pod_uid))
        return known is not None and known.at != UNSEEN

    def take(self, pod: Pod, at: int, *, written: bool) -> bool:
        """Give a slot to a pod; return whether its claim is new, or now under its UID.

        Args:
            pod: the pod, on its node.
            at: a resourceVersion at which the pod has the slot, or `UNSEEN`.
            written: the binding is written. An unwritten binding may fail: until then only a slot
                on the pod's node is taken, and holds for the pod elsewhere stay.
        """
        known_as, hold = self.claimant(pod.uid), self.hold_on(pod.node)
        if self.has_seen(pod.uid) and known_as == pod.uid:
            return False
        has_slot = known_as in self.claimants or (hold and hold.slots)
        if not (written or has_slot or self.left()[0].get(pod.node)):
            return False
        self.give(pod.uid, at, pod.node)
        return True

    def release(self, pod_uid: str) -> bool:
        """Take a pod's slot back; return whether the pod had one."""
        if pod_uid not in self.claimants:
            return False
        del self.claimants[pod_uid]
        self._left = None
        return True

    @property
    def is_reckoned(self) -> bool:
        """Whether each claim since the last `left` took a slot on its own node."""
        return self._left is not None

    def left(self) -> tuple[Mapping[str, int], int]:
        """Return the unclaimed slots by node, and the number of unclaimed slots without a node.

        A claim on a node without a slot takes a slot without a node, or else one of the last node.
        A mapping that was returned before is updated with later claims.
        """
        if self._left is not None:
            return self._left
        left = self.reservation.unclaimed([claim.node for claim in self.claimants.values()])
        # Most accounts have one node or no claim: a recomputation is cheap, so nothing is kept.
        # With `refillUpTo` each claim adds a slot, and whole nodes stay held: not kept either.
        stays = self.reservation.refill_up_to or self.reservation.is_whole
        self._left = left if self.claimants and self.holds[1:] and not stays else None
        return left

    def lacks_place(self, snapshot: Snapshot) -> bool:
        """Return whether any unclaimed slot has no node, or a node that does not exist."""
        left, unplaced = self.left()
        return unplaced > 0 or any(n and not snapshot.has_node(node) for node, n in left.items())

    def staying(self, stays: Callable[[str], bool]) -> tuple[Parts, int]:
        """Return the parts that stay, and the number of unclaimed slots that lose their place."""
        left, unplaced = self.left()
        staying = []
        for part in self.reservation.placed:
            lost = 0 if stays(part.node) else left[part.node]
            staying.append(part._replace(slots=part.slots - lost))
            unplaced += lost
        return clipped(staying, self.reservation.most_slots), unplaced

    def compact(self) -> Parts:
        """Return the placed parts without the slots of ended claims."""
        claimed_on = [claim.node for claim in self.claimants.values()]
        return compacted(self.reservation.placed, self.left()[0], claimed_on)
