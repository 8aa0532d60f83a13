"""The quotas of all namespaces: one `Admission` for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from itertools import count, islice

from reserver.reservations.admission import Admission
from reserver.reservations.ceiling import Ceiling
from reserver.reservations.quota import (
    AdmissionState,
    Quota,
    QuotaShare,
    WriteOrder,
    exceeded,
    forbidden,
    usage,
)
from reserver.reservations.reservation import Reservation

AT_ONCE = 16
"""Most steps that one change takes at once; `changed` is called if there are more."""


class Quotas:
    """The admission of reservations in every namespace.

    A reservation counts in its namespace. A reservation that is written in several namespaces
    (docs/adr/0009) may hold if one of them admits it.

    Attributes:
        ceiling: the limit on all untrusted namespaces together.
    """

    def __init__(
        self,
        default: Quota | None = None,
        trusted: Collection[str] = (),
        changed: Callable[[str], None] = lambda _: None,
        *,
        is_open: bool = True,
    ) -> None:
        """Begin without reservations.

        Args:
            default: the quota of namespaces without their own; None for no limits.
            trusted: the namespaces to which neither the default nor the ceiling applies.
            changed: called with each namespace whose use of quotas may have changed, or which has
                steps left.
            is_open: admit reservations; else only from `open` on.
        """
        self._default = default
        self._trusted = frozenset(trusted)
        self._is_open = is_open
        self.changed = changed
        self._admissions: dict[str, Admission] = {}
        self._limits: dict[str, tuple[Quota, ...]] = {}
        self._numbers = count()
        self.ceiling = Ceiling(changed)
        self.ceiling.is_open = is_open

    def of(self, namespace: str) -> Sequence[Quota]:
        """Return the quotas of a namespace: its own, or else the default."""
        own = self._limits.get(namespace)
        if own or self._default is None or namespace in self._trusted:
            return own or ()
        return (self._default,)

    def namespaces(self) -> Collection[str]:
        """Return the namespaces that have a quota of their own, or reservations."""
        return self._limits.keys() | self._admissions.keys()

    def pending(self, namespace: str) -> int:
        """Return the number of reservations of a namespace that are not admitted."""
        admission = self._admissions.get(namespace)
        return admission.pending if admission else 0

    def used(self, namespace: str) -> Mapping[str, int]:
        """Return the used amounts of a namespace's quotas."""
        admission = self._admissions.get(namespace)
        return admission.used if admission else {}

    def limit(self, namespace: str, quotas: Sequence[Quota]) -> None:
        """Set the quotas of a namespace; `steps` applies them."""
        if quotas:
            self._limits[namespace] = tuple(quotas)
        else:
            self._limits.pop(namespace, None)
        admission = self._admissions.get(namespace)
        if admission is not None:
            admission.limit(self.of(namespace))
        self.changed(namespace)

    def default_to(self, default: Quota | None) -> Generator[None]:
        """Set the default quota, one namespace a step; `steps` applies it."""
        self._default = default
        for namespace in tuple(self._admissions):
            if namespace not in self._limits:
                self.limit(namespace, ())
            yield

    def open(self) -> Iterator[str]:
        """Admit reservations from now on: yield each namespace whose `steps` are due."""
        while closed := [name for name, each in self._admissions.items() if not each.is_open]:
            for namespace in closed:
                admission = self._admissions.get(namespace)
                if admission is not None:
                    admission.is_open = True
                    yield namespace
        self._is_open = True
        yield from self.ceiling.open()

    def admits(self, reservation: Reservation) -> bool:
        """Return whether the reservation's namespace admits it."""
        admission = self._admissions.get(reservation.ref.namespace)
        return admission is not None and admission.admits(reservation.identity)

    def why(self, reservation: Reservation) -> str:
        """Return why a reservation that is not admitted may not hold; empty if it has ended."""
        admission = self._admissions.get(reservation.ref.namespace)
        share = admission.shares.get(reservation.identity) if admission else None
        return share.why or "reservations are being counted" if share is not None else ""

    def why_never(self, reservation: Reservation) -> str:
        """Return why a reservation could not be admitted even alone; empty if it could."""
        admission = self._admissions.get(reservation.ref.namespace)
        share = admission.shares.get(reservation.identity) if admission else None
        return share.why if share is not None and share.standing is AdmissionState.BLOCKED else ""

    def exceeding(self, reservation: Reservation) -> str:
        """Return the limit that an admitted reservation exceeds; empty if none."""
        admission = self._admissions.get(reservation.ref.namespace)
        share = admission.shares.get(reservation.identity) if admission else None
        return share.why if share is not None and share.standing is AdmissionState.ADMITTED else ""

    def exceeding_count(self) -> int:
        """Return the number of admitted reservations that exceed a limit."""
        every = (share for each in self._admissions.values() for share in each.shares.values())
        return sum(share.standing is AdmissionState.ADMITTED and bool(share.why) for share in every)

    def charge(self, reservation: Reservation, slots: int, now: float) -> None:
        """Update the unclaimed slots of a reservation; 0 if it has ended.

        A reservation counts once in a namespace, however many entries it has there.
        """
        admission = self._admission(reservation.ref.namespace)
        share = admission.shares.get(reservation.identity)
        if share is not None:
            if reservation.lasting and share.reservation.expires_at != reservation.expires_at:
                admission.replace(reservation.identity, reservation)  # A copy was extended.
            admission.update(reservation.identity, slots)
        elif slots:
            self._enter(admission, reservation, slots, reservation.created_at or now, now)
        self.changed(reservation.ref.namespace)

    def leave(self, reservation: Reservation) -> None:
        """Remove a reservation that is no longer written in its namespace."""
        namespace = reservation.ref.namespace
        self._admission(namespace).leave(reservation.identity)
        self.changed(namespace)

    def replace(self, before: Reservation, after: Reservation, now: float, *, stays: bool) -> None:
        """Replace a reservation by another one.

        If the new one asks for no more, it keeps the turn; otherwise it waits behind all others.

        Args:
            before: the former reservation.
            after: the new reservation.
            now: unix seconds.
            stays: the former one has another entry in the namespace, and keeps its turn.
        """
        admission = self._admission(after.ref.namespace)
        if stays or not admission.replace(before.identity, after):
            if not stays:
                admission.leave(before.identity)
            if after.identity not in admission.shares:
                self._enter(admission, after, after.slots, max(now, after.created_at), now)

    def recall(self, reservation: Reservation) -> None:
        """Restore a reservation's recorded admission.

        After `open` this has no effect: all admissions are decided.
        """
        admission = self._admissions.get(reservation.ref.namespace)
        if (
            admission is not None
            and not admission.is_open
            and reservation.identity in admission.shares
        ):
            admission.put_first(reservation.identity)

    @property
    def is_open(self) -> bool:
        """Whether reservations are admitted."""
        return self._is_open

    def steps(self, namespace: str, most: int | None = AT_ONCE) -> Iterator[str]:
        """Apply the quotas of a namespace in steps.

        Args:
            namespace: the namespace.
            most: most steps; `changed` is called if more are left. None for all.

        Yields:
            For each step the identity of a reservation whose admission or reason changed; empty if
            none did.
        """
        admission = self._admissions.get(namespace)
        if admission is None:
            self.ceiling.tried(namespace, waits=False)
            return
        taken = 0
        for identity in islice(admission.steps(), most):
            taken += 1
            yield identity
        if not admission.shares and self._admissions.get(namespace) is admission:
            del self._admissions[namespace]
        elif taken == most:
            self.changed(namespace)
        self.ceiling.tried(namespace, waits=admission.waits_for_others)

    def trial(
        self, reservations: Sequence[Reservation], now: float, instead: Reservation | None = None
    ) -> str:
        """Return why new reservations could not all be admitted at once; empty if they could.

        Args:
            reservations: the new reservations, all in one namespace.
            now: unix seconds.
            instead: the reservation that one of them would replace.
        """
        namespace = reservations[0].ref.namespace
        quotas = self.of(namespace)
        asked: dict[str, int] = {}
        for each in reservations:
            if why := forbidden(quotas, each, each.created_at or now):
                return why
            for counted, amount in usage(each, each.slots).items():
                asked[counted] = asked.get(counted, 0) + amount
        admission = self._admissions.get(namespace)
        before = admission.shares.get(instead.identity) if admission and instead else None
        if before and all(amount <= before.asked.get(name, 0) for name, amount in asked.items()):
            return ""  # The replacement keeps its turn.
        if admission is not None:
            why = admission.trial(asked, instead.identity if instead else "")
        else:
            why = exceeded(quotas, asked, {})
        return why or self._trial_of_ceiling(reservations, before)

    def _trial_of_ceiling(
        self, reservations: Sequence[Reservation], before: QuotaShare | None
    ) -> str:
        if reservations[0].ref.namespace in self._trusted:
            return ""
        is_in = before is not None and before.standing is AdmissionState.ADMITTED
        instead = (before.reservation, before.asked) if before is not None and is_in else None
        return self.ceiling.trial(
            ((each, usage(each, each.slots)) for each in reservations), instead
        )

    def _enter(
        self, admission: Admission, reservation: Reservation, slots: int, at: float, now: float
    ) -> None:
        turn = WriteOrder(is_new=True, at=at, number=next(self._numbers))
        since = reservation.created_at or now
        asked = usage(reservation, slots)
        admission.enter(QuotaShare(reservation, asked, turn, since))

    def is_below_ceiling(self, namespace: str) -> bool:
        """Return whether the ceiling counts what a namespace holds."""
        return namespace not in self._trusted

    def _admission(self, namespace: str) -> Admission:
        admission = self._admissions.get(namespace)
        if admission is None:
            ceiling = self.ceiling if self.is_below_ceiling(namespace) else None
            admission = Admission(self.of(namespace), is_open=self._is_open, ceiling=ceiling)
            self._admissions[namespace] = admission
        return admission
