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
        moment: when it became so.
        node: where it is bound, empty if nowhere.
        done: it takes nothing from its node any more.
        requests: what it takes.
        refusal: why kube-scheduler could not place it.
        nominated: the node that it is nominated for.
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
        uid: of this pod.
        name: as ``namespace/name``.
        scheduler: who is to bind it.
        priority: its number.
        only_capacity: nothing it asks of its node depends on other pods (spread, affinity, ports).
        is_mirror: a kubelet shows by it what it runs from a file, under a name of its own choice.
        may_borrow: it tolerates that it is recalled from what is lent.
        traits: what it was known by, each once; more than one if its labels changed.
        states: what it was, in order; never empty.
        binding: how it got its node; None if it has none, or had it when it was first seen.
        claims: what it said it claimed when it was first seen on a node: the refs, as text,
            without what follows the ``@``.
        leaves: when it began to be deleted; None if nobody saw that.
        gone: when it was deleted, at the earliest.
        gone_by: when it certainly was.
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
        """Return what it takes, or would, of a node at a revision."""
        return (self.at(revision) or self.states[-1]).requests

    def at(self, revision: int) -> PodState | None:
        """Return what it was at a revision, None if it was not."""
        if self.gone and self.gone.revision <= revision:
            return None
        states = (s for s in reversed(self.states) if s.moment.revision <= revision)
        return next(states, None)
