"""The account of one reservation: its entries, claims and holds.

A reservation may be written at several refs while it is moved (docs/adr/0009). Claims, holds and
the place that Reserver chose are the reservation's, so they are kept once (docs/adr/0025).
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
from reserver.reservations.node_holds import Hold
from reserver.reservations.placement import Parts, clipped, compacted
from reserver.reservations.reservation import NOT_YET, Ref, Reservation, Written

# Most have no claim. Writing to this raises; `Account.give` replaces it.
_NO_CLAIMS = cast("dict[str, Claimed]", MappingProxyType({}))


@dataclass(slots=True, eq=False)
class Account:
    """One reservation, with its claims and holds.

    Attributes:
        reservation: what its first entry says, which stands for all of them (`latest`).
        identity: its identity.
        order: later ones are greater.
        entries: where it is written, the longest known first (`LedgerView.copies`).
        claimants: the pods that claimed a slot, by UID, or by mark if a record says no more.
        holds: what it holds, one for each node.
        is_edited: where it is placed was decided for what stood there before.
        obstacle: why it has no place, or why its place cannot be written; empty if unknown.
        is_faulty: one of its owner rules has raised an exception; none is asked any more.
        idle_since: since when no pod has a slot of what it holds, in whole unix seconds; 0 while
            one has, or where it does not matter.
        peak: when most pods had slots of it, if it is reusable; known since this process began.
    """

    reservation: Reservation
    identity: str
    order: int
    entries: tuple[Entry, ...] = ()
    claimants: dict[str, Claimed] = field(default_factory=lambda: _NO_CLAIMS)
    holds: tuple[Hold, ...] = ()
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
        """The refs of its entries."""
        return tuple(entry.reservation.ref for entry in self.entries)

    def entry(self, ref: Ref) -> Entry:
        """Return what is written at one of its refs."""
        return next(entry for entry in self.entries if entry.reservation.ref == ref)

    def written_in(self, namespace: str) -> int:
        """Return how many of its entries are in a namespace."""
        return sum(entry.reservation.ref.namespace == namespace for entry in self.entries)

    def put(self, entry: Entry) -> None:
        """Take what is written at a ref."""
        if entry not in self.entries:
            self.entries = (*self.entries, entry)

    def pop(self, ref: Ref) -> Entry:
        """Forget what is written at a ref; return it."""
        gone = self.entry(ref)
        self.entries = tuple(entry for entry in self.entries if entry is not gone)
        return gone

    @property
    def is_holding(self) -> bool:
        """Whether it holds anything anywhere."""
        return any(hold.amounts for hold in self.holds)

    @property
    def turns(self) -> dict[str, Written]:
        """The turn of what holds on each node."""
        return {hold.reservation.node: hold.since for hold in self.holds}

    def stand(self, since: Written, earlier: Mapping[str, Written]) -> None:
        """Take a turn on each node where it is placed, in the order of the holds there.

        Args:
            since: the turn on nodes where it is new.
            earlier: the turns that it keeps, by node.
        """
        is_placed = not self.reservation.node
        self._hold(
            Hold(self.reservation.on(part), earlier.get(part.node, since), is_placed=is_placed)
            for part in self.reservation.parts
        )

    def succeed(self, admits: Callable[[Reservation], bool]) -> None:
        """Let the entry that is first now stand for all (`latest`), with the former one's turns."""
        self.reservation, self._left = latest(self.entries, admits), None
        by_node = self.by_node()
        for part in self.reservation.parts:
            by_node[part.node].reservation = self.reservation.on(part)

    def move(self, parts: Parts) -> Iterable[Hold]:
        """Place it elsewhere, behind all that holds there; return the holds that end.

        Its turn on nodes where it stays is the same.
        """
        for entry in self.entries:
            entry.reservation = replace(entry.reservation, placed=parts)
        self.reservation = replace(self.reservation, placed=parts)
        before, holds = self.by_node(), []
        for part in parts:
            hold = before.pop(part.node, None) or Hold(self.reservation, NOT_YET, is_placed=True)
            hold.reservation = self.reservation.on(part)
            holds.append(hold)
        self._hold(holds)
        return before.values()

    def _hold(self, holds: Iterable[Hold]) -> None:
        self.holds, self._left = tuple(holds), None
        # An owner's call asks for the hold on each node that it names; one alone needs no dict.
        self._by_node = self.by_node() if len(self.holds) > 1 else None
        # Asked for each pod that says it claimed a slot.
        placed = sum(hold.reservation.slots for hold in self.holds)
        self._is_placed = placed >= self.reservation.slots

    def by_node(self) -> dict[str, Hold]:
        """Return what it holds, by node."""
        return {hold.reservation.node: hold for hold in self.holds}

    def hold_on(self, node: str) -> Hold | None:
        """Return what it holds on a node; None where it is not placed there."""
        if self._by_node is not None:
            return self._by_node.get(node)
        return next((hold for hold in self.holds if hold.reservation.node == node), None)

    def may_be_on(self, node: str) -> bool:
        """Return whether a slot may be on a node; one that has no place yet may be on any."""
        return not self._is_placed or self.hold_on(node) is not None

    def recall(self, entry: Entry) -> bool:
        """Take the recorded claims of an entry that are by now known to be its own.

        Drop those that are known not to be; return whether any were taken.
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
        """Give a slot to a pod: at a resourceVersion, and on a node unless that is unknown."""
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
        """Return what a pod would be among the claimants: by its UID, or else by its mark."""
        if self._marks and pod_uid not in self.claimants and mark(pod_uid) in self.claimants:
            return mark(pod_uid)
        return pod_uid

    def _unmarked(self, pod_uid: str) -> Claimed | None:
        """Return the claim that is known by a pod's mark, which its UID replaces; None for none."""
        known = self.claimants.pop(mark(pod_uid), None) if self._marks else None
        self._marks -= known is not None
        return known

    def _take_one(self, node: str) -> None:
        """Note one more claim: a slot where it is, or else all is reckoned anew."""
        if self._left is not None:
            left, _ = self._left
            node = self.reservation.node or node
            if left.get(node):
                left[node] -= 1
            else:
                self._left = None

    @property
    def idle_until(self) -> float:
        """When it ends unless a pod claims it before, in unix seconds."""
        wait = self.reservation.release_if_idle
        return self.idle_since + wait if wait and self.idle_since else math.inf

    @property
    def ends_at(self) -> float:
        """When it ends unless a pod claims it before: it expires, or has been idle for so long."""
        expires_at = self.reservation.expires_at
        return self.idle_until if expires_at is None else min(expires_at, self.idle_until)

    def take_over(self, other: Account) -> None:
        """Take the claims of another account, its peak, and how long it has been idle."""
        self.idle_since = max(self.idle_since, other.idle_since)
        self.peak = max(self.peak, other.peak)
        for uid, claim in other.claimants.items():
            self.give(uid, *claim)

    def has_seen(self, pod_uid: str) -> bool:
        """Return whether a watch has shown that a pod has a slot."""
        known = self.claimants.get(self.claimant(pod_uid))
        return known is not None and known.at != UNSEEN

    def take(self, pod: Pod, at: int, *, written: bool) -> bool:
        """Give a slot to a pod; return whether that is new.

        Args:
            pod: the pod, on its node.
            at: a resourceVersion at which it has it, or `UNSEEN`.
            written: its binding is. One that is not may fail: until it is, only a slot where the
                pod goes is taken, and what is held for it elsewhere stays held.
        """
        known_as = self.claimant(pod.uid)
        if self.has_seen(pod.uid):
            if known_as != pod.uid:
                self.give(pod.uid, at, pod.node)
            return known_as != pod.uid
        is_known = known_as in self.claimants
        if not written and not is_known and not self.left()[0].get(pod.node):
            return False
        self.give(pod.uid, at, pod.node)
        return True

    def release(self, pod_uid: str) -> bool:
        """Give the slot of a pod back; return whether it had one."""
        if pod_uid not in self.claimants:
            return False
        del self.claimants[pod_uid]
        self._left = None
        return True

    @property
    def is_reckoned(self) -> bool:
        """Whether each claim since the last `left` has taken a slot where it is."""
        return self._left is not None

    def left(self) -> tuple[Mapping[str, int], int]:
        """Return how many slots are not claimed, by node, and how many of these have no place.

        A claim where it has no slot is of one without a place, or else of the last node. What was
        returned before shows what is claimed since.
        """
        if self._left is not None:
            return self._left
        left = self.reservation.unclaimed([claim.node for claim in self.claimants.values()])
        # Most are on one node or have no claim, and need not keep it: that is quickly reckoned.
        # Of one that replaces slots another one is wanted with each claim; whole nodes stay held.
        stays = self.reservation.refill_up_to or self.reservation.is_whole
        self._left = left if self.claimants and self.holds[1:] and not stays else None
        return left

    def lacks_place(self, snapshot: Snapshot) -> bool:
        """Return whether any slot has no node."""
        left, unplaced = self.left()
        return unplaced > 0 or any(n and not snapshot.has_node(node) for node, n in left.items())

    def staying(self, stays: Callable[[str], bool]) -> tuple[Parts, int]:
        """Return the parts that stay, and how many slots do not that nobody has claimed."""
        left, unplaced = self.left()
        staying = []
        for part in self.reservation.placed:
            lost = 0 if stays(part.node) else left[part.node]
            staying.append(part._replace(slots=part.slots - lost))
            unplaced += lost
        return clipped(staying, self.reservation.most_slots), unplaced

    def compact(self) -> Parts:
        """Return where it is placed, without the slots of claims that have ended."""
        claimed_on = [claim.node for claim in self.claimants.values()]
        return compacted(self.reservation.placed, self.left()[0], claimed_on)
