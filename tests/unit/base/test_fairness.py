"""A namespace that takes most of a shared resource leaves as much to all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reserver.base.fairness import FairCount, FairMemory, in_turns
from reserver.cluster.pod import Controller
from reserver.cluster.snapshot import Snapshot
from reserver.errors import TooMany
from reserver.grpc.concurrency import MOST_CALLS, CallCounts
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.reviewer import MOST_PENDING, ReviewLimits
from reserver.moves.index import MOST_MOVES, MOST_MOVES_IN_ALL, MoveIndex
from reserver.moves.podmove import MoveObject
from reserver.reservations.enums import Phase
from reserver.reservations.owner import OwnerRule, Replaced, ReplacementStanding, Succession
from reserver.reservations.reservation import Written
from tests.builders import NAMESPACE, node, pod, ref, reservation, state_of

PEERS = tuple(f"10.0.0.{number}" for number in range(200))
ACCOUNTS = tuple(f"system:serviceaccount:evil:sa-{number}" for number in range(200))


def fill(count: FairCount, who: str) -> int:
    """Take the whole share of one user; return its size."""
    while count.has_room(who):
        count.add(who)
    return count.of(who)


def test_who_is_alone_has_half_and_who_comes_next_half_of_the_rest() -> None:
    count = FairCount(100)
    assert [fill(count, who) for who in "abcd"] == [50, 25, 13, 6]
    each = FairCount.each(50)
    assert [fill(each, who) for who in "ab"] == [50, 25]


def test_those_who_keep_asking_have_as_much_each() -> None:
    count = FairCount(100)
    for _ in range(100):
        for who in "abc":
            if count.has_room(who):
                count.add(who)
    assert [count.of(who) for who in "abc"] == [25, 25, 25]


def test_what_counts_for_one_alone_takes_nothing_from_others() -> None:
    count = FairCount(3)
    assert not count.has_room("a", extra=2)
    assert count.has_room("b")


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=120),
)
def test_nobody_takes_more_than_is_left_and_what_is_given_back_is_free(
    most: int, played: list[tuple[str, bool]]
) -> None:
    count, has = FairCount(most), Counter[str]()
    for who, takes in played:
        left = most - has.total()
        assert count.has_room(who) == (has[who] < left)
        if takes and count.has_room(who):
            count.add(who)
            has[who] += 1
        elif not takes and has[who]:
            count.add(who, -1)
            has[who] -= 1
        assert (count.total, count.of(who)) == (has.total(), has[who])
        assert has.total() <= most
        assert has.total() == most or count.has_room("newcomer")


def take(stack: ExitStack, calls: Iterable[AbstractContextManager[None]]) -> tuple[int, str]:
    """Open calls until one is refused; return the number of admitted calls, and the refusal."""
    for number, call in enumerate(calls):
        try:
            stack.enter_context(call)
        except TooMany as refused:
            return number, str(refused)
    raise AssertionError


def test_watches_of_one_namespace_leave_their_part_to_others() -> None:
    shares = CallCounts()
    with ExitStack() as stack:
        greedy = (shares.watches.of(user) for user in ACCOUNTS for _ in range(32))
        opened, why = take(stack, greedy)
        assert opened == 128
        assert "system:serviceaccount:evil has 128 watches open, which is its share of 256" in why
        for _ in range(32):
            stack.enter_context(shares.watches.of("manager"))
        stack.enter_context(shares.watches.of("system:serviceaccount:shop:sa"))


def test_calls_of_one_namespace_leave_their_part_to_others() -> None:
    shares = CallCounts()
    with ExitStack() as stack:
        greedy = (shares.users.of(user) for user in ACCOUNTS for _ in range(128))
        assert take(stack, greedy)[0] == MOST_CALLS // 2
        for _ in range(128):
            stack.enter_context(shares.users.of("manager"))


def test_health_watches_of_many_addresses_keep_nobody_from_asking() -> None:
    shares = CallCounts()
    with ExitStack() as stack:
        take(stack, (shares.lasting.of(peer) for peer in PEERS for _ in range(8)))
        for _ in range(8):
            stack.enter_context(shares.anonymous.of("10.9.9.9"))


def test_unknown_tokens_of_one_address_leave_their_part_to_others() -> None:
    limits = ReviewLimits(lambda: 0.0)
    with ExitStack() as stack:
        greedy = (limits.asking("10.0.0.1") for _ in range(MOST_PENDING))
        assert take(stack, greedy)[0] == MOST_PENDING // 2
        stack.enter_context(limits.asking("10.9.9.9"))


def move(namespace: str, number: int) -> MoveObject:
    metadata = {
        "name": f"m-{number}",
        "namespace": namespace,
        "uid": f"{namespace}-{number}",
        "creationTimestamp": "2030-01-01T00:00:00Z",
    }
    return decode(MoveObject, encode({"metadata": metadata, "spec": {"pod": {"name": "web"}}}))


def test_pod_moves_of_many_namespaces_leave_their_part_to_others() -> None:
    moves = MoveIndex(lambda _: None)
    for namespace in range(12):
        for number in range(MOST_MOVES):
            moves.put(move(f"evil-{namespace}", number))
    taken = sum(known.move is not None for known in moves)
    assert MOST_MOVES_IN_ALL // 2 < taken < MOST_MOVES_IN_ALL
    moves.put(move("shop", 0))
    assert [each.move is not None for each in moves if each.name.namespace == "shop"] == [True]
    refused = [known.problem for known in moves if known.problem is not None]
    assert refused
    assert not any("evil" in str(problem) for problem in refused)


def test_who_fills_what_all_remember_forgets_its_own_and_the_oldest_first() -> None:
    memory = FairMemory[tuple[str, int], str](800)
    for number in range(100):
        memory.put("shop", ("shop", number), "theirs")
    for number in range(10_000):
        memory.put("greedy", ("greedy", number), "its own")
    assert all(memory.get(("shop", number)) == "theirs" for number in range(100))
    assert ("greedy", 0) not in memory
    assert all(("greedy", number) in memory for number in range(9_500, 10_000))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40)), max_size=300))
def test_what_all_remember_is_bounded_and_each_has_its_part(puts: list[tuple[str, int]]) -> None:
    memory = FairMemory[tuple[str, int], int](24)
    for number, (who, key) in enumerate(puts):
        memory.put(who, (who, key), number)
        assert memory[who, key] == number
        assert len(memory) <= 24
    for who in "abc":
        latest = dict.fromkeys(put for put in reversed(puts) if put[0] == who)
        assert all(put in memory for put in list(latest)[:7])  # 24 * 7 / 8 / 3


def test_who_has_many_pods_end_does_not_have_others_pods_claim_a_seat_that_is_not_theirs() -> None:
    """A pod that is older than the removed pod is no replacement."""
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1"))
    succession, web = Succession(snapshot), Controller("ReplicaSet", "web")
    sibling = replace(pod("web-1", controller=web), revision=1)
    succession.seen(sibling, None, listed=False)
    leaving = replace(pod("web-0", controller=web, node="worker-1"), revision=2)
    succession.gone(leaving)
    for number in range(20_001):
        name = leaving.name._replace(namespace="greedy")
        succession.gone(replace(leaving, name=name, uid=f"uid-{number}"))
    rule = OwnerRule(namespace=NAMESPACE, controller=web, replaces=Replaced(leaving.uid))
    assert succession.standing(rule, sibling) is ReplacementStanding.MAY_NOT


def test_who_binds_many_pods_has_no_reservation_of_others_come_back() -> None:
    """A reservation that a watch shows after its pod was bound and is gone is over."""
    state = state_of(node("worker-1", cpu="8"))
    owner = replace(pod("owner", node="worker-1"), revision=10)
    state.ledger.bound(owner, exact=True)
    state.ledger.pod_gone(owner)
    for number in range(20_001):
        name = owner.name._replace(namespace="greedy", name=f"pod-{number}")
        state.ledger.bound(replace(owner, name=name, uid=f"uid-{number}"), exact=True)
    state.ledger.put(reservation("r", cpu="1"), Written(5, 5))
    assert state.ledger.phase(ref("r")) is Phase.CLAIMED


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers()), max_size=20))
def test_the_first_of_each_comes_before_the_second_of_any(asked: list[tuple[str, int]]) -> None:
    found = list(in_turns(asked, lambda each: each[0]))
    assert Counter(found) == Counter(asked)
    turns = Counter[str]()
    rounds = []
    for who, _ in found:
        rounds.append(turns[who])
        turns[who] += 1
    assert rounds == sorted(rounds)
    for one in "abc":
        assert [each for each in found if each[0] == one] == [e for e in asked if e[0] == one]
