"""The ceiling: a limit on the reservations of all tenants together (docs/adr/0072).

Each namespace has its quotas; the sum of many quotas may be more than the cluster should hold. As
with a quota, an admitted reservation stays admitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from reserver.reservations.quota import EXCEEDED, HELD, Quota, show_amount
from reserver.reservations.reservation import Reservation

Amounts = Mapping[str, int]
"""Resources, in millicores of cpu and base units of all others."""

NAME = "tenantCeiling"

CLUSTER = ""
"""The key of the cluster, in place of a node's name."""

NOTHING: Mapping[tuple[str, str], int] = MappingProxyType({})


class CeilingLimits(NamedTuple):
    """The most that tenants may hold.

    Attributes:
        cluster: the limits of the cluster; other resources are not limited.
        of_node: returns the limit of a node's resource; None without one.
        percent_of_node: the limit as a percentage of a node's allocatable; None without one.
    """

    cluster: Amounts
    of_node: Callable[[str, str], int | None]
    percent_of_node: int | None = None


NO_LIMITS = CeilingLimits({}, lambda *_: None)


class Ceiling:
    """The room that tenants hold in the cluster and on each node, and the namespaces that wait.

    On a node count the reservations that name it, from their admission on, and the placed ones as
    long as they hold. After a release the waiting namespaces are tried one after the other, in the
    order of waiting, so a release costs the same however many wait.

    Attributes:
        limits: the most that tenants may hold.
        quota: the limits of the cluster as a quota.
        is_open: whether all earlier admissions are counted; until then nothing is admitted.
        freed: called with the node that a removed reservation named.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        """Begin without limits; `changed` is called with a namespace that may have room now."""
        self.limits, self.quota = NO_LIMITS, Quota(name=NAME, hard={})
        self.is_open = True
        self.freed: Callable[[str], None] = lambda _: None
        self._changed = changed
        self._used: dict[str, dict[str, int]] = {}
        self._releases = 0
        self._waiting: dict[str, int] = {}  # At which release each was tried.

    @property
    def used(self) -> Amounts:
        """The amounts that tenants hold in the cluster, under the keys of a quota."""
        return {f"{HELD}{name}": amount for name, amount in self._of(CLUSTER).items()}

    @property
    def on_nodes(self) -> Mapping[str, Amounts]:
        """The amounts that tenants hold on each node."""
        return {node: held for node, held in self._used.items() if node != CLUSTER}

    def _of(self, node: str) -> Amounts:
        return self._used.get(node, {})

    def limit(self, limits: CeilingLimits) -> None:
        """Replace the limits."""
        hard = {f"{HELD}{name}": amount for name, amount in limits.cluster.items()}
        self.limits, self.quota = limits, Quota(name=NAME, hard=hard)
        self._released()

    def count(self, reservation: Reservation, asked: Amounts, sign: int) -> None:
        """Count a reservation's amounts; `sign` is 1 on its admission, -1 on its end."""
        for (node, name), amount in _keys(reservation, asked):
            self._add(node, name, sign * amount)
        if sign < 0:
            self._released()
            if reservation.node:
                self.freed(reservation.node)

    def count_placed(self, node: str, before: Amounts, after: Amounts) -> None:
        """Count a placed hold's new amounts on a node in place of its former ones."""
        for name, amount in after.items():
            self._add(node, name, amount)
        for name, amount in before.items():
            self._add(node, name, -amount)
        if before:
            self._released()

    def _add(self, node: str, name: str, amount: int) -> None:
        held = self._used.setdefault(node, {})
        held[name] = held.get(name, 0) + amount
        if not held[name]:
            del held[name]
        if not held:
            del self._used[node]

    def excess(
        self,
        reservation: Reservation,
        asked: Amounts,
        also: Mapping[tuple[str, str], int] = NOTHING,
    ) -> str:
        """Return why a reservation would exceed the ceiling; empty if it would not.

        The text does not change while other reservations come and go.

        Args:
            reservation: a tenant's reservation.
            asked: its amounts.
            also: amounts that are asked for at the same time, by node and resource.
        """
        if not self.is_open and self.limits is not NO_LIMITS:
            return f"{EXCEEDED} {NAME}: admitted reservations are being counted"
        for key, amount in _keys(reservation, asked):
            node, name = key
            limits = self.limits
            limit = limits.of_node(node, name) if node else self.quota.limit(f"{HELD}{name}")
            if limit is None or self._of(node).get(name, 0) + also.get(key, 0) + amount <= limit:
                continue
            of = f"node {node}" if node else "the cluster"
            counted = f"{HELD}{name}"
            return (
                f"{EXCEEDED} {NAME} of {of}, requested: "
                f"{counted}={show_amount(counted, amount)}, limited for all tenants together: "
                f"{counted}={show_amount(counted, limit)}"
            )
        return ""

    def trial(
        self,
        asked: Iterable[tuple[Reservation, Amounts]],
        instead: tuple[Reservation, Amounts] | None = None,
    ) -> str:
        """Return why some reservations could not all be admitted; empty if they could.

        Args:
            asked: the new reservations with their amounts.
            instead: the admitted reservation that they would replace.
        """
        also: dict[tuple[str, str], int] = {}
        for key, amount in _keys(*instead) if instead else ():
            also[key] = -amount
        for each in asked:
            if why := self.excess(*each, also):
                return why
            for key, amount in _keys(*each):
                also[key] = also.get(key, 0) + amount
        return ""

    def tried(self, namespace: str, *, waits: bool) -> None:
        """Record whether a namespace still waits after a try, and try the next one."""
        self._waiting.pop(namespace, None)
        if waits:
            self._waiting[namespace] = self._releases
        self._try_next()

    def open(self) -> Sequence[str]:
        """Admit from now on: all earlier admissions are counted. Return the waiting namespaces."""
        self.is_open = True
        return tuple(self._waiting)

    def _released(self) -> None:
        self._releases += 1
        self._try_next()

    def _try_next(self) -> None:
        namespace = next(iter(self._waiting), None)
        if namespace is not None and self._waiting[namespace] < self._releases:
            del self._waiting[namespace]
            self._changed(namespace)


def _keys(reservation: Reservation, asked: Amounts) -> Iterable[tuple[tuple[str, str], int]]:
    """Yield the amounts that count in the cluster, and on the named node."""
    for counted, amount in asked.items():
        if counted.startswith(HELD):
            name = counted.removeprefix(HELD)
            yield (CLUSTER, name), amount
            if reservation.node:
                yield (reservation.node, name), amount
