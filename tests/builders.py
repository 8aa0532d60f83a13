"""Small builders that keep scenarios short."""

from collections.abc import Callable, Iterable, Mapping

from reserver.base.pacer import outcome
from reserver.cluster import quantity
from reserver.cluster.constraints import LENT, UNCONSTRAINED, Constraints, Taint, Toleration
from reserver.cluster.labels import equals
from reserver.cluster.node import Node
from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod, PodName
from reserver.reservations.entry import identified
from reserver.reservations.enums import Policy, Strategy
from reserver.reservations.owner import OwnerRule
from reserver.reservations.placement import ANYWHERE, Part, Parts, Placement
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.placement import Placed, placing
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Effect
from reserver.scheduling.wake import Wake

NAMESPACE = "shop"
BORROWER = Constraints(tolerations=(Toleration(LENT, "Exists", "", ""),), tolerates_recall=True)
"""The constraints of a pod that may borrow what holds lend."""

_OF_APPS = {"DaemonSet", "ReplicaSet", "StatefulSet"}

NOW = 1_900_000_000.0
"""Unix seconds at which scenarios play."""


def amounts(written: Mapping[str, str]) -> dict[str, int]:
    """Return quantities in the units of decisions; `gpu` stands for nvidia.com/gpu."""
    full = {"nvidia.com/gpu" if name == "gpu" else name: text for name, text in written.items()}
    return {name: quantity.amount(name, text) for name, text in full.items()}


def name(pod_name: str) -> PodName:
    """Return the full name of a pod of the scenarios' namespace."""
    return PodName(NAMESPACE, pod_name)


def pod(  # noqa: PLR0913 - the fields of a pod
    pod_name: str,
    *,
    uid: str = "",
    namespace: str = NAMESPACE,
    node: str = "",
    priority: int = 0,
    finished: bool = False,
    nominated: str = "",
    claims: Iterable[Reservation] = (),
    preferences: bool = False,
    devices: bool = False,
    labels: Mapping[str, str] | None = None,
    controller: Controller = NO_CONTROLLER,
    constraints: Constraints = UNCONSTRAINED,
    **requests: str,
) -> Pod:
    """Return a pod whose UID, unless given, follows from its name."""
    return Pod(
        name=PodName(namespace, pod_name),
        uid=uid or f"uid-{pod_name}",
        requests={"pods": 1} | amounts(requests),
        node=node,
        priority=priority,
        finished=finished,
        nominated_node=nominated,
        claims=frozenset(r.identity for r in claims),
        has_preferences=preferences,
        has_resource_claims=devices,
        labels=labels or {},
        controller=controller,
        controller_version="apps/v1" if controller.kind in _OF_APPS else "",
        constraints=constraints,
    )


def node(
    node_name: str,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    **allocatable: str,
) -> Node:
    """Return a node that has room for 110 pods unless it says otherwise."""
    return Node(
        name=node_name,
        allocatable=amounts({"pods": "110"} | allocatable),
        labels=labels or {},
        taints=tuple(taints),
    )


def reservation(  # noqa: PLR0913 - the fields of a reservation
    key: str,
    *,
    node: str = "worker-1",
    owners: Iterable[str] = ("owner",),
    slots: int = 1,
    starts: float | None = None,
    expires: float | None = None,
    require: bool = False,
    yields_above: int | None = None,
    lends_below: int | None = None,
    rules: Iterable[OwnerRule] = (),
    reusable: bool = False,
    refill_up_to: int = 0,
    release_if_idle: float = 0.0,
    placement: Placement = ANYWHERE,
    placed: Mapping[str, int] | None = None,
    **resources: str,
) -> Reservation:
    """Return a reservation; one slot holds the resources and one of the node's pods."""
    return identified(
        Reservation(
            ref=ref(key),
            digest="",
            node=node,
            owners=tuple(frozenset(map(name, owners))),
            resources={"pods": 1} | amounts(resources),
            slots=slots,
            starts_at=starts,
            expires_at=expires,
            policy=Policy.REQUIRE if require else Policy.PREFER,
            yields_above=yields_above,
            lends_below=lends_below,
            rules=tuple(rules),
            reusable=reusable or refill_up_to > 0,
            refill_up_to=refill_up_to,
            release_if_idle=release_if_idle,
            placement=placement,
            placed=parts(placed or {}),
        )
    )


def parts(slots: Mapping[str, int]) -> Parts:
    """Return so many slots on each node."""
    return tuple(Part(node, number) for node, number in slots.items())


def demanding(strategy: Strategy = Strategy.PACK, **demands: object) -> Placement:
    """Return a placement with these constraints."""
    constraints = Constraints(**demands)  # type: ignore[arg-type]
    return Placement(constraints=constraints, strategy=strategy, text=repr(demands))


def rule(pod: str = "", controller: Controller = NO_CONTROLLER, **labels: str) -> OwnerRule:
    """Return a rule about pods of the scenarios' namespace."""
    return OwnerRule(namespace=NAMESPACE, pod=pod, controller=controller, selector=equals(labels))


def ref(key: str, item: str = "") -> Ref:
    """Return a place in the scenarios' store."""
    return Ref(NAMESPACE, "store", key, item)


def at(now: float) -> Callable[[], float]:
    """Return a clock that has stopped."""
    return lambda: now


def show(state: State, *things: Node | Pod | Reservation) -> None:
    """Show things to a state, in their order."""
    for thing in things:
        if isinstance(thing, Node):
            state.node_seen(thing)
        elif isinstance(thing, Pod):
            state.pod_seen(thing)
        else:
            state.ledger.put(thing)


def state_of(*things: Node | Pod | Reservation, now: float = NOW) -> State:
    """Return a state that shows all of these and that is complete."""
    state = State()
    state.ledger.advance(now)
    show(state, *things)
    state.is_complete = True
    return state


def place(reservation: Reservation, slots: int, state: State) -> Placed:
    """Return where so many slots of a reservation go."""
    return outcome(placing(reservation, slots, state))


def wake(freed: Iterable[str], state: State, now: float) -> tuple[Effect, ...]:
    """Return the effects that retry waiting pods after holds on nodes have shrunk, in order."""
    this = Wake(tuple(freed), state, now)
    return tuple(filter(None, map(this.judge, outcome(this.order()))))


def held(state: State, node_name: str, resource: str = "cpu") -> int:
    """Return the held amount of a node, from the matrix."""
    return _cell(state, node_name, resource, "held")


def requested(state: State, node_name: str, resource: str = "cpu") -> int:
    """Return the requests of the pods on a node, from the matrix."""
    return _cell(state, node_name, resource, "requested")


def _cell(state: State, node_name: str, resource: str, layer: str) -> int:
    row = state.snapshot.row(node_name)
    if row is None:
        return 0
    return int(getattr(state.snapshot, layer)[row, state.snapshot.columns[resource]])


class Ready:
    """A process whose watches are always up to date."""

    def obstacles(self) -> tuple[str, ...]:
        return ()

    async def caught_up(self) -> None:
        pass

    async def agrees(self) -> bool:
        return True
