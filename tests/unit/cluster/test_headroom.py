"""The nodes where requests fit next to the holds, after small and large changes."""

import sys
from types import FrameType

import pytest

from reserver.cluster.snapshot import Snapshot
from tests.builders import node

CPU = {"cpu": 1000}


def held(nodes: int) -> Snapshot:
    """Return nodes with four CPUs, two of them held."""
    snapshot = Snapshot()
    for number in range(nodes):
        snapshot.set_node(node(f"worker-{number}", cpu="4", memory="8Gi"))
        snapshot.set_held(f"worker-{number}", {"cpu": 2000})
    return snapshot


def fitting(snapshot: Snapshot, requests: dict[str, int]) -> set[str]:
    fits = snapshot.headroom.fits(requests)
    return {name for name in snapshot.node_names() if fits[snapshot.rows([name])[0]]}


@pytest.mark.parametrize("changed", [1, 16, 17, 40, 2_000])
def test_what_has_changed_counts(changed: int) -> None:
    snapshot = held(40)
    assert len(fitting(snapshot, CPU)) == 40

    for number in range(changed):
        snapshot.take(f"worker-{number % 40}", {"cpu": 1500})

    assert fitting(snapshot, CPU) == {f"worker-{number}" for number in range(changed, 40)}


def test_each_request_is_compared_for_itself() -> None:
    snapshot = held(2)
    snapshot.take("worker-0", {"cpu": 1500})

    assert fitting(snapshot, CPU) == {"worker-1"}
    assert fitting(snapshot, {"cpu": 500, "memory": 2**40}) == {"worker-0", "worker-1"}
    assert fitting(snapshot, {"cpu": 501}) == {"worker-1"}
    assert not fitting(snapshot, {"cpu": 2**62})


def test_what_comes_to_a_fork_stays_there() -> None:
    snapshot = held(2)
    assert len(fitting(snapshot, CPU)) == 2
    forked = snapshot.fork()

    forked.take("worker-0", {"cpu": 1500})
    snapshot.take("worker-1", {"cpu": 1500})
    snapshot.set_node(node("worker-2", cpu="4", gpu="1"))  # Another column.

    assert fitting(forked, CPU) == {"worker-1"}
    assert fitting(snapshot, CPU) == {"worker-0", "worker-2"}


def test_nobody_can_write_to_what_is_remembered() -> None:
    fits = held(1).headroom.fits(CPU)

    with pytest.raises(ValueError, match="read-only"):
        fits[0] = False


def test_what_is_remembered_is_bounded_by_bytes() -> None:
    """A pod whose names exceed the whole memory leaves the names of other pods."""
    snapshot = held(40)
    snapshot.headroom.fits(CPU)
    snapshot.headroom.fits({f"example.com/{'x' * 200}-{number}": 1 for number in range(1_000)})
    assert compared(snapshot) == 0

    for number in range(2_000):
        snapshot.headroom.fits({"cpu": number + 1_001})
    assert compared(snapshot) == 1


def compared(snapshot: Snapshot) -> int:
    """Return the number of comparisons of all nodes for one answer."""
    names = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            names.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        snapshot.headroom.fits(CPU)
    finally:
        sys.setprofile(None)
    return names.count("_everywhere")
