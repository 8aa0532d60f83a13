"""Metrics of holds: amounts by namespace, time to acknowledgement, and cost."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest

from prometheus_client import Histogram
from prometheus_client.core import Metric

from reserver.base.pacer import Pacer
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.extender.metrics import counter, gauge
from reserver.reservations.enums import Phase
from reserver.reservations.listener import Listener
from reserver.reservations.outcome import Ending
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.status import ShortNodes
from reserver.reservations.view import LedgerView
from reserver.scheduling.state import State
from reserver.stores.hold_accounts import HoldAccounts

_STEP = 32
"""Reservations counted between two yields to other work: about 0.5 ms."""


@dataclass(frozen=True, slots=True)
class Census:
    """The number of reservations, and the amounts that they hold.

    Attributes:
        phases: number of reservations in each phase.
        unbacked: number of holds without the room on their node, by namespace of the reservation.
        held: amounts held for pods of a namespace, by resource and namespace, in millicores, bytes
            or pieces.
    """

    phases: Tally[Phase] = field(default_factory=Tally)
    unbacked: Tally[str] = field(default_factory=Tally)
    held: dict[str, Tally[str]] = field(default_factory=dict)


def take(
    snapshot: Snapshot, ledger: LedgerView, resources: Iterable[str]
) -> Generator[None, None, Census]:
    """Count all reservations, and return the held amounts of the given resources.

    Reservations that are added or removed meanwhile are not counted.
    """
    census = Census(held={resource: Tally() for resource in resources})
    short = ShortNodes.of(snapshot)
    for number, ref in enumerate(ledger.refs()):
        if number % _STEP == 0:
            yield
        reservation, phase = ledger.get(ref), ledger.phase(ref)
        if reservation is None or phase is None:
            continue
        census.phases[phase] += 1
        if phase in {Phase.ACTIVE, Phase.FAILED} and not short.backs(reservation, phase, ledger):
            census.unbacked[ref.namespace] += 1
        if phase is Phase.ACTIVE:
            _add(census, reservation, ledger)
    return census


def _add(census: Census, reservation: Reservation, ledger: LedgerView) -> None:
    namespace = owner_namespace(reservation)
    for amounts in ledger.kept(reservation.ref).values():
        for resource, by_namespace in census.held.items():
            by_namespace[namespace] += amounts.get(resource, 0)


def owner_namespace(reservation: Reservation) -> str:
    """Return the namespace of the pods that a reservation is for: that of its first owner."""
    if reservation.owners:
        return reservation.owners[0].namespace
    return reservation.rules[0].namespace if reservation.rules else reservation.ref.namespace


MOST_NAMESPACES = 50
"""Namespaces with their own time series; all others share one."""

OTHERS = "_others"
"""The label of the shared series: no namespace can have this name."""

HOME, TENANT = "home", "tenant"
"""The writer of a reservation: the platform, in Reserver's own namespaces, or a tenant."""

_ACKNOWLEDGED_S = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_WAITS_S = (1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)
UNITS = {"cpu": ("core", 1000), "memory": ("byte", 1)}


def bounded(amounts: Mapping[str, float]) -> dict[str, float]:
    """Return the largest amounts by namespace, and the sum of the others."""
    largest = nlargest(MOST_NAMESPACES, amounts, key=lambda name: (amounts[name], name))
    kept = {name: amounts[name] for name in largest}
    return {**kept, OTHERS: sum(amounts.values()) - sum(kept.values())}


class HoldMetrics(Listener):
    """Measures the holds of one process.

    Attributes:
        acknowledgement: seconds from the first sight of a reservation to its written status.
        wait: seconds from a pod's refusal because of holds to its binding.
    """

    def __init__(self, state: State, clock: Callable[[], float]) -> None:
        """Measure the holds of a state; `clock` returns unix seconds."""
        self._state, self._clock = state, clock
        help_text = (
            "Time from the first sight of a reservation until its status is written, in seconds."
        )
        observe = partial(Histogram, registry=None)
        self.acknowledgement = observe(
            "reserver_acknowledgement_seconds", help_text, buckets=_ACKNOWLEDGED_S
        )
        help_text = "Time from a pod's refusal because of holds until it is bound, in seconds."
        self.wait = observe("reserver_pod_wait_seconds", help_text, buckets=_WAITS_S)
        self._violated = Tally[str]({HOME: 0, TENANT: 0})
        self._refused_at: dict[str, float] = {}
        self._census = Census()
        self._core_seconds: dict[str, list[float]] = {}  # By namespace: used and unused.

    def acknowledged(self, ref: Ref) -> None:
        """Observe the first written status of a reservation."""
        if since := self._state.ledger.since(ref):
            self.acknowledgement.observe(max(0.0, self._clock() - since))

    def violated(self, ref: Ref) -> None:
        """Count a hold that has lost its room."""
        self._violated[self.scope(ref.namespace)] += 1

    def on_pod_refused(self, pod_uid: str) -> None:
        """Start the wait of a pod."""
        if len(self._refused_at) > 2 * len(self._state.waiting) + MOST_NAMESPACES:
            self._forget_gone()
        self._refused_at.setdefault(pod_uid, self._clock())

    def on_pod_assumed(self, pod: Pod, node: str) -> None:  # noqa: ARG002 - on any node
        """End the wait of a pod."""
        refused_at = self._refused_at.pop(pod.uid, None)
        if refused_at is not None:
            self.wait.observe(max(0.0, self._clock() - refused_at))

    def ended(self, ending: Ending) -> None:
        """Add the core seconds of an ended reservation, claimed in the end or not."""
        reservation = ending.reservation
        cores = reservation.resources.get("cpu", 0) / 1000
        if not cores or not reservation.parts:
            return
        begin = max(ending.since, reservation.starts_at or 0.0)
        end = min(ending.at, reservation.expires_at or ending.at)
        used = sum(max(0.0, (claim.at or end) - begin) for claim in ending.claims)
        claims = max(len(ending.claims), ending.claimed)
        used += (claims - len(ending.claims)) * max(0.0, end - begin)
        unused = max(0, reservation.slots_beside(claims) - claims) * max(0.0, end - begin)
        namespace = owner_namespace(reservation)
        is_known = namespace in self._core_seconds or len(self._core_seconds) < MOST_NAMESPACES
        sums = self._core_seconds.setdefault(namespace if is_known else OTHERS, [0.0, 0.0])
        sums[0] += cores * used
        sums[1] += cores * unused

    def scope(self, namespace: str) -> str:
        """Return the writer of a namespace's reservations: `HOME` or `TENANT`."""
        return HOME if namespace in self._state.public_namespaces else TENANT

    async def survey(self) -> None:
        """Count all reservations for `families`, yielding to calls meanwhile."""
        counting = take(self._state.snapshot, self._state.ledger, UNITS)
        self._census = await Pacer().run(counting)

    def families(self, problems: Iterable[tuple[tuple[str, str], int]]) -> Iterator[Metric]:
        """Yield the metrics, with the amounts of the last `survey`.

        Args:
            problems: the parts of the stores, each with its number of entries not in force.
        """
        yield from self.acknowledgement.collect()
        yield from self.wait.collect()
        help_text = "Holds that lost the room that they had on their node."
        violated = [((scope,), count) for scope, count in self._violated.items()]
        yield counter("reserver_holds_violated", help_text, violated, ("scope",))
        help_text = "Core-seconds held by ended reservations, claimed in the end or not."
        seconds = {
            (namespace, outcome): amount
            for namespace, amounts in self._core_seconds.items()
            for outcome, amount in zip(("used", "unused"), amounts, strict=True)
        }
        yield counter(
            "reserver_held_core_seconds", help_text, seconds.items(), ("namespace", "outcome")
        )
        yield self._invalid(problems)
        yield self._by_phase()
        yield self._unbacked()
        yield self._over_quota()
        yield self._held()

    def _invalid(self, problems: Iterable[tuple[tuple[str, str], int]]) -> Metric:
        help_text = "Invalid entries of a store, which are not enforced."
        counts = bounded({"/".join(part): count for part, count in problems})
        homes = {name: name.partition("/")[0] for name in counts}
        invalid = [((name, homes[name], self.scope(homes[name])), n) for name, n in counts.items()]
        labels = ("configmap", "namespace", "scope")
        return gauge("reserver_invalid_entries", help_text, invalid, labels)

    def _by_phase(self) -> Metric:
        help_text = "Reservations in the store, by phase."
        phases = self._census.phases  # The ledger has no unreadable reservations.
        counts = [((phase,), phases[phase]) for phase in Phase if phase is not Phase.INVALID]
        return gauge("reserver_reservations", help_text, counts, ("phase",))

    def _unbacked(self) -> Metric:
        help_text = "Reservations whose node lacks the room that they hold, or does not exist."
        counts, home = self._census.unbacked, self._state.public_namespaces
        tenants = bounded({name: count for name, count in counts.items() if name not in home})
        unbacked = {(name, HOME): float(counts[name]) for name in home}
        unbacked |= {(name, TENANT): count for name, count in tenants.items()}
        return gauge(
            "reserver_unbacked_reservations", help_text, unbacked.items(), ("namespace", "scope")
        )

    def _over_quota(self) -> Metric:
        help_text = (
            "Reservations that do not hold because the quotas of their namespace are used up."
        )
        quotas = self._state.ledger.quotas
        pending = {name: quotas.pending(name) for name in quotas.namespaces()}
        counts = bounded({name: count for name, count in pending.items() if count})
        over = [((name,), count) for name, count in counts.items()]
        return gauge("reserver_quota_exceeded_reservations", help_text, over, ("namespace",))

    def _held(self) -> Metric:
        """Return the amounts held for pods of each namespace, wherever the reservation is."""
        held = [
            ((namespace, resource, UNITS[resource][0]), amount / UNITS[resource][1])
            for resource, by_namespace in self._census.held.items()
            for namespace, amount in bounded(by_namespace).items()
        ]
        help_text, labels = (
            "Resources held for pods of a namespace.",
            ("namespace", "resource", "unit"),
        )
        return gauge("reserver_namespace_held", help_text, held, labels)

    def _forget_gone(self) -> None:
        waiting = self._state.waiting
        self._refused_at = {uid: at for uid, at in self._refused_at.items() if uid in waiting}


def account_families(held: HoldAccounts) -> Iterator[Metric]:
    """Yield amounts held over time, and the number of reservations with low use."""
    help_text = (
        "Amounts times seconds held for pods of a namespace: free, in claimed slots beyond what "
        "their pods request (spare), and requested by these pods (used)."
    )
    labels = ("namespace", "resource", "unit", "part")
    seconds = [
        ((namespace, resource, UNITS[resource][0], part), amount / UNITS[resource][1])
        for (namespace, resource), use in tuple(held.seconds.items())
        for part, amount in use._asdict().items()
    ]
    yield counter("reserver_namespace_held_unit_seconds", help_text, seconds, labels)
    help_text = "Reservations whose pods requested less than `warnUseBelow` on the last day."
    low = [((namespace,), count) for namespace, count in bounded(held.low_use()).items()]
    yield gauge("reserver_low_use_reservations", help_text, low, ("namespace",))
