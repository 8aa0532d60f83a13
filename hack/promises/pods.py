"""A pod over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hack.promises.amounts import Amounts
from hack.promises.history import Moment
from hack.promises.owners import Traits


class PodState(NamedTuple):
    """A pod from one write to the next.

    Attributes:
        moment: the moment of the write.
        node: the node of its binding, empty before.
        done: the pod has ended and uses no capacity.
        requests: its effective request.
        refusal: kube-scheduler's reason for not placing it.
        nominated: its nominated node.
    """

    moment: Moment
    node: str
    done: bool
    requests: Amounts
    refusal: str
    nominated: str


@dataclass(frozen=True)
class Binding:
    """A pod's binding to a node.

    Attributes:
        moment: of the write; of the next list, if the write was missed.
        after: a moment at which it certainly had not happened.
        node: where to.
        created: the pod was created with its node: no scheduler decided.
        late: the write itself was missed.
        wanted: not before this was it decided: the pod was created then, by the API server's clock
            in whole seconds; unix seconds.
    """

    moment: Moment
    after: Moment
    node: str
    created: bool = False
    late: bool = False
    wanted: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod from its first write to its last.

    Attributes:
        uid: its UID.
        name: ``namespace/name``.
        scheduler: ``spec.schedulerName``.
        priority: ``spec.priority``.
        only_capacity: its placement does not depend on other pods (spread, affinity, ports).
        is_mirror: it is a mirror pod of a kubelet's static pod.
        may_borrow: it tolerates the recall of lent room.
        traits: its different traits; more than one if its labels changed.
        states: its states in order; never empty.
        binding: its binding; None if it has none, or had a node when it was first seen.
        claims: the refs that it claimed when it was first seen on a node, without the part after
            the ``@``.
        leaves: the time of its deletionTimestamp's write; None if no watch showed that.
        gone: the earliest possible time of its deletion.
        gone_by: the latest possible time of its deletion.
    """

    uid: str
    name: str
    scheduler: str
    priority: int
    only_capacity: bool
    is_mirror: bool
    may_borrow: bool
    traits: tuple[Traits, ...]
    states: tuple[PodState, ...]
    binding: Binding | None
    claims: frozenset[str]
    leaves: Moment | None
    gone: Moment | None
    gone_by: Moment | None

    @property
    def belongs_to_node(self) -> bool:
        """Whether it is there for the node's own sake: a DaemonSet's, or a mirror pod."""
        return self.is_mirror or any(each.is_daemon for each in self.traits)

    @property
    def done(self) -> Moment | None:
        """When it ended by itself, None if it did not."""
        return next((state.moment for state in self.states if state.done), None)

    def requests(self, revision: int) -> Amounts:
        """Return its effective request at a revision."""
        return (self.at(revision) or self.states[-1]).requests

    def at(self, revision: int) -> PodState | None:
        """Return its state at a revision, None if it did not exist."""
        if self.gone and self.gone.revision <= revision:
            return None
        states = (s for s in reversed(self.states) if s.moment.revision <= revision)
        return next(states, None)
