"""What Filter answers to the pods of a PodGroup one after the other, Bind allows them together."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.pod import Controller, Pod
from reserver.reservations.reservation import Reservation
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import filter_nodes
from tests.builders import NOW, node, pod, reservation, rule, state_of

GANG = "training"
WORKERS = ("worker-1", "worker-2", "worker-3")
OURS = rule(controller=Controller("PodGroup", GANG))
cores = st.integers(1, 4)


@st.composite
def held(draw: st.DrawFn, key: str) -> Reservation:
    """Draw what is held for the group, or for others."""
    is_ours = draw(st.booleans())
    return reservation(
        key,
        node=draw(st.sampled_from(WORKERS)),
        owners=() if is_ours else ("other",),
        rules=(OURS,) if is_ours else (),
        slots=draw(st.integers(1, 3)),
        cpu=str(draw(cores)),
    )


def member(number: int, cpu: int) -> Pod:
    return replace(pod(f"member-{number}", cpu=str(cpu)), group=GANG)


@st.composite
def members(draw: st.DrawFn) -> tuple[Pod, ...]:
    """Draw the pods of the group, in the order in which kube-scheduler asks for them."""
    return tuple(
        member(at, n) for at, n in enumerate(draw(st.lists(cores, min_size=1, max_size=6)))
    )


@given(
    st.tuples(*(st.integers(2, 9) for _ in WORKERS)),
    st.integers(0, 4).flatmap(lambda count: st.tuples(*(held(f"r{n}") for n in range(count)))),
    members(),
    st.data(),
)
def test_a_gang_that_filter_judged_to_fit_is_bound_as_a_whole(
    sizes: tuple[int, ...],
    holds: tuple[Reservation, ...],
    gang: tuple[Pod, ...],
    data: st.DataObject,
) -> None:
    workers = (node(name, cpu=str(n)) for name, n in zip(WORKERS, sizes, strict=True))
    state = state_of(*workers, *holds, *gang)
    room = {name: 1000 * n for name, n in zip(WORKERS, sizes, strict=True)}
    assumed = Counter[str]()
    chosen: list[tuple[Pod, str]] = []
    for each in gang:
        asked = each.requests["cpu"]
        names = [name for name in WORKERS if room[name] - assumed[name] >= asked]
        nodes = filter_nodes(each, names, state, NOW).nodes
        if nodes:
            state.answered(each, nodes, NOW)
            target = data.draw(st.sampled_from(nodes))
            assumed[target] += asked
            chosen.append((each, target))
    for each, target in data.draw(st.permutations(chosen)):
        state.gangs.drop(each)
        verdict = judge_bind(each, target, state, NOW)
        assert verdict.refusal is None, (each.name, target)
        state.assume(each, target, verdict.claims)
