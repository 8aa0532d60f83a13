"""Affinity, anti-affinity and spread of pods, as constraints of an integer program.

Each rule holds in the final placement. A rule that is violated at first may stay violated, but no
more than before: Kubernetes evicts no pod for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import ABSENT, Bools, Ids
from reserver.cluster.constraints import ANY_IP, HostPort, PodTerm, Spread
from reserver.cluster.headroom import Int64s
from reserver.cluster.labels import Selector
from reserver.cluster.pod import Pod
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot
from reserver.rebalance.pod_classes import Places, PodClasses
from reserver.rebalance.solver import NO_BOUND, Floats, Program
from reserver.scheduling.neighbours import (
    companions,
    meant_by,
    rejects,
    rows_of_pods,
    selector_of,
    spread_domains,
)


def keep_neighbours(
    program: Program, planned: PlanningSnapshot, classes: PodClasses, places: Places
) -> None:
    """Add what pods demand of their neighbours to a program.

    Args:
        program: its first variables are the places.
        planned: the cluster at first.
        classes: of the pods that may move, or are to land.
        places: of those.
    """
    rules = _Rules(program, planned, classes, places)
    rules.spread()
    rules.anti_affinity()
    rules.affinity()
    rules.ports()


class _Counted(NamedTuple):
    """Pods of some classes, by domain.

    Attributes:
        places: the columns of the nodes that the pods may use.
        domains: the domain of each place.
        fixed: int64 array, domains: pods that do not move.
        begun: int64 array, domains: pods before the plan.
    """

    places: Rows
    domains: Rows
    fixed: Int64s
    begun: Int64s


class _Rules:
    """The program, and whom its rules are about."""

    def __init__(
        self, program: Program, planned: PlanningSnapshot, classes: PodClasses, places: Places
    ) -> None:
        self._program = program
        self._planned = planned
        self._snapshot = planned.snapshot
        self._samples = classes.samples
        self._totals = classes.totals
        self._places = places

    def spread(self) -> None:
        """No domain exceeds the least one by more than is allowed."""
        known = set[object]()
        for pod in self._samples:
            for constraint, eligible in spread_domains(pod, self._snapshot):
                selector = selector_of(pod, constraint)
                key = (pod.name.namespace, selector, constraint, eligible.tobytes())
                if key not in known:
                    known.add(key)
                    self._spread(pod, constraint, selector, eligible)
                own = np.array([constraint in each.constraints.spread for each in self._samples])
                self._bar(own, constraint.topology_key)

    def _spread(self, pod: Pod, constraint: Spread, selector: Selector, eligible: Bools) -> None:
        space = pod.name.namespace
        meant = np.array(
            [
                each.name.namespace == space and selector.matches(each.labels)
                for each in self._samples
            ]
        )
        rows = rows_of_pods(space, selector, self._snapshot)
        ids = np.where(eligible, self._ids(constraint.topology_key), ABSENT)
        counted = self._counted(meant, rows, ids)
        domains = np.unique(ids[ids != ABSENT])
        if not len(domains) or not len(counted.places):
            return
        has_enough = len(domains) >= max(constraint.min_domains, 1)
        begun, fixed = counted.begun[domains], counted.fixed[domains]
        lowest = int(begun.min()) if has_enough else 0
        least = self._program.variables(NO_BOUND if has_enough else 0)
        at = np.searchsorted(domains, counted.domains)
        if has_enough:
            self._program.derive(least, lambda values: _least(values, counted.places, at, fixed))
        skew = np.maximum(begun - lowest, constraint.max_skew)
        high = self._program.constraints(skew - fixed)
        self._program.weigh(high, least, -1.0)
        self._program.weigh(high[at], counted.places)
        # Where there are too many at first some may stay, and none may enter.
        enters = self._places.enters[counted.places]
        for domain in np.flatnonzero(begun - lowest > constraint.max_skew).tolist():
            entered = counted.places[enters & (at == domain)]
            self._program.sum(entered, float(self._places.begun[entered].sum()))
        if has_enough:
            low = self._program.constraints(np.full(len(domains), NO_BOUND), -fixed)
            self._program.weigh(low, least, -1.0)
            self._program.weigh(low[at], counted.places)

    def anti_affinity(self) -> None:
        """Forbid pods in a domain with a pod whose anti-affinity matches them."""
        owners: dict[PodTerm, list[int]] = {}
        for number, pod in enumerate(self._planned.pods):
            for term in pod.constraints.anti_affinity:
                owners.setdefault(term, []).append(number)
        for term, rows in meant_by(owners, self._snapshot):
            kept_away = self._meant((term,))
            own = np.array([term in each.constraints.anti_affinity for each in self._samples])
            if not (kept_away.any() or own.any()):
                continue
            homes = self._planned.rows[owners[term]]
            meant = np.array(
                [rejects(term, self._planned.pods[n], self._snapshot) for n in owners[term]]
            )
            homes, meant = homes[homes != NOWHERE], meant[homes != NOWHERE]
            ids = self._ids(term.topology_key)
            others = self._counted(kept_away, rows, ids)
            self._exclude(others, self._counted(own & kept_away, homes[meant], ids), itself=1)
            self._exclude(others, self._counted(own & ~kept_away, homes[~meant], ids), itself=0)

    def _exclude(self, others: _Counted, owners: _Counted, itself: int) -> None:
        """Forbid matched pods next to an owner of the term; `itself` is 1 if an owner matches."""
        places = np.union1d(others.places, owners.places)
        if not len(places) or not (len(owners.places) or owners.fixed.any()):
            return
        is_same = itself and set(others.places.tolist()) == set(owners.places.tolist())
        is_same = is_same and np.array_equal(others.fixed, owners.fixed)
        for domain in np.union1d(others.domains, owners.domains).tolist():
            theirs = others.places[others.domains == domain]
            own = owners.places[owners.domains == domain]
            there, here = int(others.begun[domain]), int(owners.begun[domain])
            fixed = int(others.fixed[domain])
            if is_same:
                self._program.sum(theirs, max(there, 1) - fixed)
            elif there > itself and here:  # Broken at first.
                self._program.sum(theirs, there - fixed)
                self._program.sum(own, here - int(owners.fixed[domain]))
            elif owners.fixed[domain]:
                self._program.sum(theirs, itself - fixed)
            elif len(own):
                is_here = self._program.variables(1)
                self._program.derive(is_here, partial(_is_any, places=own))
                most = int(self._places.most[own].sum())
                rule = self._program.constraints(0.0)
                self._program.weigh(rule, own)
                self._program.weigh(rule, is_here, -float(most))
                many = int(self._places.most[theirs].sum()) + fixed
                if many > itself:
                    rule = self._program.constraints(many - fixed)
                    self._program.weigh(rule, theirs)
                    self._program.weigh(rule, is_here, many - itself)

    def affinity(self) -> None:
        """Require a matching pod in the domain: a placed one, or a moved one without affinity."""
        known = set[object]()
        for sample in self._samples:
            terms = sample.constraints.affinity
            if not terms or terms in known:
                continue
            known.add(terms)
            wanting = np.array([each.constraints.affinity == terms for each in self._samples])
            meant = self._meant(terms)
            rows = companions(terms, self._snapshot)
            if not len(rows) and (meant & wanting).any():
                continue  # The first one of them may go anywhere.
            for key in sorted({term.topology_key for term in terms}):
                self._bar(wanting, key)
                self._accompany(wanting, meant, rows, self._ids(key))

    def _accompany(self, wanting: Bools, meant: Bools, rows: Ids, ids: Rows) -> None:
        own = self._counted(wanting, rows[:0], ids)
        company = self._counted(meant, rows, ids)
        enters = self._places.enters
        comes_later = enters & wanting[self._places.classes]
        for domain in np.unique(own.domains).tolist():
            mine = own.places[own.domains == domain]
            if company.fixed[domain]:
                continue
            theirs = company.places[company.domains == domain]
            stays = mine[~enters[mine] & ~meant[self._places.classes[mine]]]
            for who, whom in ((mine[enters[mine]], theirs[~comes_later[theirs]]), (stays, theirs)):
                begun = self._places.begun
                if begun[who].any() and not begun[whom].any():
                    continue  # It has lost its company already.
                if len(who):
                    rule = self._program.constraints(0.0)
                    self._program.weigh(rule, who)
                    self._program.weigh(rule, whom, -float(self._places.most[who].sum()))

    def _bar(self, classes: Bools, key: str) -> None:
        """Keep classes from entering nodes without a label."""
        places = self._places
        is_out = self._ids(key)[places.rows] == ABSENT
        barred = np.flatnonzero(places.enters & classes[places.classes] & is_out)
        if len(barred):
            self._program.sum(barred, 0)

    def ports(self) -> None:
        """No two pods on a node take the same of its ports."""
        wanted = {port for each in self._samples for port in each.constraints.host_ports}
        ids = np.arange(len(self._planned.closed))
        for port in sorted(wanted):
            if port.ip == ANY_IP and any(_is_specific(port, each) for each in wanted):
                continue  # Those rules are about it, too.
            clique = {port, HostPort(ANY_IP, port.protocol, port.port)}
            taking = np.array(
                [not clique.isdisjoint(each.constraints.host_ports) for each in self._samples]
            )
            taken = [
                not clique.isdisjoint(each.constraints.host_ports) for each in self._planned.pods
            ]
            rows = self._planned.rows[np.flatnonzero(taken)]
            counted = self._counted(taking, rows[rows != NOWHERE], ids)
            for domain in np.unique(counted.domains).tolist():
                most = max(int(counted.begun[domain]), 1) - int(counted.fixed[domain])
                self._program.sum(counted.places[counted.domains == domain], most)

    def _ids(self, key: str) -> Rows:
        """Return the domain of each row; `ABSENT` for none."""
        return self._snapshot.topology.labels.column(key).ids.astype(np.intp)

    def _meant(self, terms: Iterable[PodTerm]) -> Bools:
        """Return the classes that all terms mean."""
        return np.array(
            [all(rejects(t, each, self._snapshot) for t in terms) for each in self._samples]
        )

    def _counted(self, meant: Bools, rows: Rows | Ids, ids: Rows) -> _Counted:
        """Return pods by domain.

        Args:
            meant: their classes.
            rows: of all of them that are on nodes.
            ids: the domain of each row.
        """
        places = np.flatnonzero(meant[self._places.classes] & (ids[self._places.rows] != ABSENT))
        domains = ids[self._places.rows[places]]
        width = int(ids.max(initial=0)) + 1
        of = ids[rows]
        begun = np.bincount(of[of != ABSENT], minlength=width)
        moving = np.bincount(domains, self._places.begun[places], width).astype(np.int64)
        return _Counted(places, domains, np.maximum(begun - moving, 0), begun)


def _least(values: Floats, places: Rows, at: Rows, fixed: Int64s) -> float:
    """Return how many pods the domain with the fewest has."""
    return float((np.bincount(at, values[places], len(fixed)) + fixed).min())


def _is_any(values: Floats, places: Rows) -> float:
    """Return whether there are pods, 0 or 1."""
    return float(values[places].any())


def _is_specific(port: HostPort, other: HostPort) -> bool:
    return other.ip != ANY_IP and (other.protocol, other.port) == (port.protocol, port.port)
