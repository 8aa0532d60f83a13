"""The decision of a Bind call, in process: judge, assume, forget."""

from collections.abc import Iterator
from functools import partial

from hack.bench.documents import encode, new_pod
from hack.bench.report import microseconds, progress, table, times
from hack.bench.rounds import side_by_side
from hack.bench.scale import Scale
from hack.bench.world import NOW, Size, owner_name, seat_of, state
from reserver.cluster.pod import Pod
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.state import State

_CALLS = 2_000


def measure(scale: Scale) -> Iterator[str]:
    """Yield the table of Bind decisions."""
    counts = (0, scale.reservations[-2])
    progress("Bind decisions: building clusters")
    none, many = (
        state(Size(nodes=scale.nodes, pods=scale.pods, reservations=count)) for count in counts
    )
    seat = seat_of(0, scale.nodes)
    stranger = decode(PodObject, encode(new_pod("web-1"))).value()
    owner = decode(PodObject, encode(new_pod(owner_name(0)))).value()
    progress("Bind decisions")
    taken = side_by_side(
        {
            "owns none, 0": partial(_decide, stranger, seat, none),
            f"owns none, {counts[1]:,}": partial(_decide, stranger, seat, many),
            f"owner on its seat, {counts[1]:,}": partial(_decide, owner, seat, many),
        },
        rounds=scale.rounds,
        calls=_CALLS,
    )
    first = taken["owns none, 0"]
    rows = [
        (name, microseconds(timings.seconds()), times(timings.ratio_to(first)))
        for name, timings in taken.items()
    ]
    title = "One Bind decision, in process: judge, assume and forget"
    yield table(title, ("pod, reservations in force", "p50", "ratio"), rows)


def _decide(pod: Pod, node: str, cluster: State) -> None:
    verdict = judge_bind(pod, node, cluster, NOW)
    if verdict.refusal is not None:
        raise RuntimeError(verdict.refusal)
    cluster.assume(pod, node, verdict.claims)
    cluster.forget(pod.uid)
