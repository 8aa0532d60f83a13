"""The ceiling on what all tenants may hold together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.ceiling import CeilingLimits
from reserver.reservations.ledger import Ledger
from reserver.reservations.placement import Part
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Reservation
from tests.builders import node, reservation


class Tenants:
    """A ledger whose tenants may hold 8 CPUs, and 4 of a node that they name."""

    def __init__(self, cluster: int = 8, of_node: int = 4, default: Quota | None = None) -> None:
        snapshot = Snapshot()
        snapshot.set_node(node("worker-1", cpu="64"))
        self.changed: list[str] = []
        self.quotas = Quotas(default, {"home"}, self.changed.append)
        self.ledger = Ledger(snapshot, quotas=self.quotas)
        self.now = 0.0
        self.limit(cluster, of_node)

    def limit(self, cluster: int, of_node: int) -> None:
        limits = CeilingLimits({"cpu": cluster * 1000}, lambda *_: of_node * 1000)
        self.quotas.ceiling.limit(limits)
        self.settle()

    def settle(self) -> int:
        """Return the number of judged namespaces."""
        looks = 0
        while self.changed:
            looks += 1
            for _ in self.ledger.admit(self.changed.pop(0)):
                pass
        return looks

    def made(self, namespace: str, cpu: int, name: str = "a", where: str = "") -> Reservation:
        made = reservation(name, node=where, cpu=str(cpu))
        ref = made.ref._replace(namespace=namespace)
        return replace(made, ref=ref, origin=f"{namespace}/{name}/{self.now}", created_at=self.now)

    def put(self, namespace: str, cpu: int, name: str = "a", where: str = "") -> Reservation:
        self.now += 1
        self.ledger.advance(self.now)
        written = self.made(namespace, cpu, name, where)
        self.ledger.put(written)
        self.settle()
        return written

    def drop(self, gone: Reservation) -> None:
        self.ledger.drop(gone.ref)
        self.settle()


def test_tenants_wait_for_each_other_with_words_that_stay_the_same() -> None:
    tenants = Tenants()
    first = tenants.put("shop", 6)
    second = tenants.put("blog", 3)
    assert tenants.quotas.admits(first)
    assert not tenants.quotas.admits(second)
    assert tenants.quotas.why(second) == (
        "exceeded quota: tenantCeiling of the cluster, requested: held.cpu=3, limited for all "
        "tenants together: held.cpu=8; it holds once there is room in the quota"
    )
    tenants.drop(first)
    assert tenants.quotas.admits(second)


def test_a_node_that_is_named_has_a_ceiling_of_its_own() -> None:
    tenants = Tenants()
    assert tenants.quotas.admits(tenants.put("shop", 3, where="worker-1"))
    assert tenants.quotas.admits(tenants.put("shop", 2, "b"))
    late = tenants.put("blog", 2, where="worker-1")
    assert "tenantCeiling of node worker-1, requested: held.cpu=2" in tenants.quotas.why(late)
    assert tenants.quotas.admits(tenants.put("news", 2))


def test_reservers_own_namespaces_are_exempt() -> None:
    tenants = Tenants()
    assert tenants.quotas.admits(tenants.put("home", 50, where="worker-1"))
    assert tenants.quotas.ceiling.used == {}
    assert tenants.quotas.admits(tenants.put("shop", 4, where="worker-1"))


def test_what_is_admitted_stays_admitted() -> None:
    tenants = Tenants()
    kept = tenants.put("shop", 6)
    tenants.limit(2, 2)
    assert tenants.quotas.admits(kept)
    late = tenants.put("blog", 1)
    assert not tenants.quotas.admits(late)
    tenants.limit(7, 4)
    assert tenants.quotas.admits(late)


def test_what_was_admitted_before_a_start_is_admitted_first() -> None:
    tenants = Tenants()
    tenants.quotas._is_open = tenants.quotas.ceiling.is_open = False
    new, old = tenants.put("blog", 8), tenants.put("shop", 6)
    small = tenants.put("news", 2)
    tenants.ledger.was_admitted(old.ref, old.digest)
    for _ in tenants.ledger.open():
        pass
    admitted = [tenants.quotas.admits(each) for each in (old, new, small)]
    assert admitted == [True, False, True]  # Before anything else is done.


def test_a_reservation_too_large_keeps_no_other_namespace_out() -> None:
    tenants = Tenants()
    first = tenants.put("shop", 6)
    large, small = tenants.put("blog", 9), tenants.put("news", 4)
    tenants.drop(first)
    assert not tenants.quotas.admits(large)
    assert tenants.quotas.admits(small)


def test_a_release_has_each_namespace_that_waits_looked_at_once() -> None:
    tenants = Tenants()
    first = tenants.put("shop", 8)
    for number in range(50):
        tenants.put(f"team-{number}", 9)
    tenants.ledger.drop(first.ref)
    assert tenants.settle() <= 52


@pytest.mark.parametrize(
    ("cpus", "says"), [((2, 2), ""), ((2, 3), "of the cluster"), ((5,), "of the cluster")]
)
def test_a_set_is_judged_as_one(cpus: tuple[int, ...], says: str) -> None:
    tenants = Tenants()
    tenants.put("shop", 4)
    asked = [tenants.made("blog", cpu, f"set-{index}") for index, cpu in enumerate(cpus)]
    why = tenants.quotas.trial(asked, 0.0)
    assert says in why
    assert bool(why) is bool(says)
    assert not tenants.quotas.trial([tenants.made("home", 50)], 0.0)


def test_an_edit_is_judged_without_what_it_replaces() -> None:
    tenants = Tenants()
    before = tenants.put("shop", 6)
    assert tenants.quotas.trial([tenants.made("shop", 8)], 0.0, before) == ""
    assert "tenantCeiling" in tenants.quotas.trial([tenants.made("shop", 9)], 0.0, before)


def test_the_quota_of_the_namespace_comes_first() -> None:
    quota = Quota(name="default", hard={"held.cpu": 1000})
    tenants = Tenants(default=quota)
    assert "exceeded quota: default" in tenants.quotas.why(tenants.put("shop", 9))


def test_who_waits_for_a_node_is_admitted_once_what_was_placed_there_is_placed_elsewhere() -> None:
    tenants = Tenants(cluster=100)
    placed = replace(tenants.made("shop", 4), placed=(Part("worker-1", 1),))
    tenants.ledger.put(placed)
    waiting = tenants.put("blog", 1, where="worker-1")
    assert not tenants.quotas.admits(waiting)
    tenants.ledger.put(replace(placed, placed=(Part("worker-2", 1),)))
    tenants.settle()
    assert tenants.quotas.admits(waiting)
