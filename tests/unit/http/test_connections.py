"""The connection that is closed for a new one: a flood closes its own connections."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from reserver.http.connections import Connections, ConnectionStage


@dataclass(eq=False)
class Peer:
    """A connection of a peer."""

    peer: str
    stage: ConnectionStage = ConnectionStage.NEW


def come(connections: Connections[Peer], peer: str) -> Peer | None:
    """Open a connection as the door does; return it if there was room."""
    if connections.is_full(peer):
        victim = connections.next_to_go(peer)
        if victim is None:
            return None
        connections.remove(victim)
    new = Peer(peer)
    connections.add(new)
    return new


def test_a_peer_with_too_many_loses_its_own_oldest() -> None:
    connections = Connections[Peer](10, 10, 2)
    first, _, other = come(connections, "a"), come(connections, "a"), come(connections, "b")
    assert connections.next_to_go("a") is first
    assert come(connections, "a") is not None
    assert connections.next_to_go("b") is not other


def test_the_peer_with_most_gives_way_to_others() -> None:
    connections = Connections[Peer](10, 4, 4)
    slow = come(connections, "kubelet")
    flood = [come(connections, "a") for _ in range(3)]
    for peer in ("b", "c", "kubelet"):
        assert connections.next_to_go(peer) in flood
    assert slow is not None


def test_when_all_are_known_the_one_that_has_waited_longest_gives_way() -> None:
    connections = Connections[Peer](3, 3, 3)
    known = [come(connections, "a") for _ in range(3)]
    for each in known:
        assert each is not None
        connections.begin(each)
    assert connections.next_to_go("b") is None
    for each in (known[1], known[0]):
        assert each is not None
        connections.end(each)
    assert connections.next_to_go("b") is known[1]
    assert connections.idle == (known[1], known[0])


def test_what_happens_to_one_that_was_pushed_out_changes_nothing() -> None:
    connections = Connections[Peer](1, 1, 1)
    gone = come(connections, "a")
    assert gone is not None
    connections.remove(gone)
    for happens in (connections.begin, connections.end, connections.remove):
        happens(gone)
    assert len(connections) == 0
    assert connections.idle == ()


STEPS = st.lists(
    st.tuples(st.sampled_from("nnnbeg"), st.sampled_from("abc"), st.integers(0, 30)), max_size=80
)


@given(STEPS)
def test_the_limits_hold_and_who_is_answered_stays(steps: list[tuple[str, str, int]]) -> None:
    connections = Connections[Peer](8, 5, 3)
    there: list[Peer] = []
    for step, peer, number in steps:
        busy = [each for each in there if each.stage is ConnectionStage.BUSY]
        if step == "n":
            before = set(there)
            new = come(connections, peer)
            if new is not None:
                there.append(new)
            there = [each for each in there if each in connections]
            assert len(before - set(there)) <= 1
            assert all(each in there for each in busy)
            assert new is not None or len(busy) == 8
        elif there:
            one = there[number % len(there)]
            if step == "g":
                connections.remove(one)
                there.remove(one)
            elif step == "b":
                connections.begin(one)
            elif one.stage is ConnectionStage.BUSY:
                connections.end(one)
        new_ones = [each.peer for each in there if each.stage is ConnectionStage.NEW]
        assert len(connections) == len(there) <= 8
        assert len(new_ones) <= 5
        assert all(new_ones.count(peer) <= 3 for peer in "abc")
        assert set(connections.idle) == {
            each for each in there if each.stage is ConnectionStage.IDLE
        }
