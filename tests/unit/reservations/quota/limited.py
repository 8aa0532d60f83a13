"""Quotas, and ledgers whose reservations they limit."""

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.ledger import Ledger
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Reservation
from tests.builders import NAMESPACE, amounts, node, reservation

WEEK = 168 * 3600.0


def quota(name: str = "team", ttl: float | None = None, **hard: str) -> Quota:
    """Return a quota of `reservations`, and of held amounts by resource."""
    found = {
        "reservations" if counted == "reservations" else f"held.{counted}": amount
        for counted, amount in amounts(hard).items()
    }
    return Quota(name=name, hard=found, max_ttl=ttl)


def ledger_of(*quotas: Quota, default: Quota | None = None, is_open: bool = True) -> Ledger:
    snapshot = Snapshot()
    for worker in ("worker-1", "worker-2"):
        snapshot.set_node(node(worker, cpu="1k", memory="1Ti"))
    ledger = Ledger(snapshot, quotas=Quotas(default, ("reserver-system",), is_open=is_open))
    ledger.quotas.limit(NAMESPACE, quotas)
    return ledger


def drain(ledger: Ledger) -> None:
    for _ in ledger.admit(NAMESPACE):
        pass


def limit(ledger: Ledger, *quotas: Quota) -> None:
    ledger.quotas.limit(NAMESPACE, quotas)
    drain(ledger)


def holding(ledger: Ledger) -> set[str]:
    return {r.ref.key for r, _ in ledger if ledger.holding(r.ref) and any_held(ledger, r)}


def any_held(ledger: Ledger, one: Reservation) -> bool:
    return any(ledger.holding(one.ref).values())


def write(ledger: Ledger, *sizes: tuple[str, int]) -> None:
    for key, cpu in sizes:
        ledger.put(reservation(key, cpu=str(cpu), owners=[f"pod-{key}"]))
