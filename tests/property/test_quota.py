"""Quotas: a naive reading of the rule gives the same holders, always and after a start."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.ledger import Ledger
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Reservation
from tests.builders import NAMESPACE, node, pod, reservation

sizes = st.integers(1, 6)
limits = st.integers(0, 12)
OTHER = "blog"
KEYS = ("a", "b", "c", "d", "e", "f")


@dataclass
class Row:
    """A reservation in the order of writing."""

    written: Reservation
    left: int
    has_grown: bool = False
    """After a start it has the turn of its creation, if it has not been let in."""

    @property
    def cpu(self) -> int:
        return self.written.resources["cpu"] * self.left


class QuotasAgainstTheRule(RuleBasedStateMachine):
    """A namespace whose reservations come, grow, shrink, are claimed and go.

    Another namespace has the same names.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ledger = self._empty(is_open=True)
        self.hard: tuple[int, int] | None = None
        self.row: list[Row] = []
        self.inside: list[Row] = []
        self.second = 0.0
        self.claims = 0
        self.claimed: set[str] = set()

    @staticmethod
    def _empty(*, is_open: bool) -> Ledger:
        snapshot = Snapshot()
        for worker in ("worker-1", "worker-2"):
            snapshot.set_node(node(worker, cpu="64"))
        return Ledger(snapshot, quotas=Quotas(is_open=is_open))

    @rule(key=st.sampled_from(KEYS), cpu=sizes, slots=st.integers(1, 3), label=st.integers(0, 3))
    def write(self, key: str, cpu: int, slots: int, label: int) -> None:
        self.second += 1
        self.ledger.advance(self.second)
        before = next((each for each in self.row if each.written.ref.key == key), None)
        owners = [f"{key}-{number}" for number in range(slots + label)]
        made = reservation(key, cpu=str(cpu), slots=slots, owners=owners)
        created = before.written.created_at if before else self.second
        written = replace(made, origin=f"{key}#{created}", created_at=created)
        if before is not None and written.digest == before.written.digest:
            return
        if written.identity in self.claimed:
            return  # Written again as it was before, it has the claims of then.
        self.ledger.put(written)
        after = Row(written, slots)
        keeps_turn = before is not None and before.cpu >= after.cpu and before.left >= slots
        after.has_grown = before is not None and (before.has_grown or not keeps_turn)
        if before is not None and keeps_turn:
            self.row[self.row.index(before)] = after
            self.inside = [after if each is before else each for each in self.inside]
        else:
            self.row = [each for each in self.row if each is not before] + [after]
        self._settle()

    @rule(key=st.sampled_from(KEYS), cpu=sizes, goes=st.booleans(), hard=st.none() | limits)
    def another_namespace(self, key: str, cpu: int, goes: bool, hard: int | None) -> None:  # noqa: FBT001
        """Reservations of the same names, and quotas, come and go elsewhere."""
        made = reservation(key, node="worker-2", cpu=str(cpu), slots=2)
        ref = made.ref._replace(namespace=OTHER)
        if goes:
            self.ledger.drop(ref)
        else:
            self.ledger.put(replace(made, ref=ref, origin=f"{OTHER}-{key}", created_at=self.second))
        quotas = () if hard is None else (Quota(name="cpu", hard={"held.cpu": hard * 1000}),)
        self.ledger.quotas.limit(OTHER, quotas)
        for _ in self.ledger.admit(OTHER):
            pass

    @precondition(lambda self: self.row)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.row))
        before = self._in()
        self.ledger.drop(gone.written.ref)
        self.row.remove(gone)
        self._settle()
        assert before - {gone.written.ref.key} <= self._in()

    @precondition(lambda self: self.row)
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        taken = data.draw(st.sampled_from(self.row))
        before = self._in()
        number = taken.written.slots - taken.left
        owner = pod(f"{taken.written.ref.key}-{number}", uid=f"u{self.claims}", node="worker-1")
        self.claims += 1
        self.claimed.add(taken.written.identity)
        self.ledger.claim(taken.written.identity, owner)
        taken.left -= 1
        if not taken.left:
            self.row.remove(taken)
            before -= {taken.written.ref.key}
        self._settle()
        assert before <= self._in()

    @rule(hard=st.none() | st.tuples(limits, st.integers(0, 4)))
    def limit(self, hard: tuple[int, int] | None) -> None:
        self.hard = hard
        self.ledger.quotas.limit(NAMESPACE, self._quotas())
        self._settle()

    def _quotas(self) -> tuple[Quota, ...]:
        if self.hard is None:
            return ()
        cpu, reservations = self.hard
        return (
            Quota(name="cpu", hard={"held.cpu": cpu * 1000}),
            Quota(name="number", hard={"reservations": reservations}),
        )

    def _settle(self) -> None:
        for _ in self.ledger.admit(NAMESPACE):
            pass
        self._play_by_the_rule()

    def _play_by_the_rule(self) -> None:
        """Let all stay in that are in, then let in who comes first of the others.

        Who could not come in if it were alone does not count.
        """
        cpu, most = self.hard or (10**6, 10**6)
        able = [each for each in self.row if each.cpu <= cpu * 1000 and most > 0]
        stay = [each for each in self.inside if any(each is one for one in self.row)]
        for each in able:
            if not any(each is one for one in stay):
                if sum(one.cpu for one in stay) + each.cpu > cpu * 1000 or len(stay) >= most:
                    break
                stay.append(each)
        self.inside = stay

    def _in(self) -> set[str]:
        return {
            reservation.ref.key
            for reservation, _ in self.ledger
            if reservation.ref.namespace == NAMESPACE
            and any(self.ledger.holding(reservation.ref).values())
        }

    @invariant()
    def those_hold_that_the_rule_lets(self) -> None:
        assert self._in() == {each.written.ref.key for each in self.inside}

    @invariant()
    def what_is_held_and_what_is_used_are_the_same(self) -> None:
        used = self.ledger.quotas.used(NAMESPACE)
        assert used.get("held.cpu", 0) == self.ledger.held_on("worker-1").get("cpu", 0)
        assert used.get("reservations", 0) == len(self._in())
        for each in self.row:
            is_in = each.written.ref.key in self._in()
            assert bool(self.ledger.excess(each.written.ref)) != is_in

    @invariant()
    def what_exceeds_says_so(self) -> None:
        cpu, most = self.hard or (10**6, 10**6)
        together = sum(each.cpu for each in self.inside) > cpu * 1000 or len(self.inside) > most
        for each in self.row:
            exceeds = self.ledger.exceeds(each.written.ref)
            is_in = each.written.ref.key in self._in()
            assert bool(exceeds) == (is_in and (together or each.cpu > cpu * 1000 or most < 1))

    @invariant()
    def after_a_start_the_same_hold(self) -> None:
        again = self._empty(is_open=False)
        again.quotas.limit(NAMESPACE, self._quotas())
        for each in sorted(self.row, key=lambda row: row.written.ref):
            again.put(each.written)
            if not self.ledger.excess(each.written.ref):
                again.quotas.recall(each.written)
            for owner in self.ledger.claimants(each.written.ref).values():
                assert owner
                again.claim(each.written.identity, owner)
        for _ in again.open():
            pass
        before = {each.written.ref for each in self.inside}
        after = {reservation.ref for reservation in again.holding_on("worker-1")}
        assert before <= after
        if not any(each.has_grown for each in self.row):
            assert before == after


TestQuotasAgainstTheRule = QuotasAgainstTheRule.TestCase
