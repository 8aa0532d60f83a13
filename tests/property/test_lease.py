"""However requests are lost and delayed, and processes paused: never do two lead at once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.unit.k8s.fakes import Request
from tests.unit.k8s.leases import LeaseServer

CANDIDATES = ("a", "b", "c")
candidates = st.sampled_from(CANDIDATES)
seconds = st.sampled_from([0.0, 0.0, 2.0, 4.9, 9.9, 12.0, 15.0])
faults = st.sampled_from(["", "", "", "lost", "unanswered"])


class SlowServer(LeaseServer):
    """A Lease server that is far away, for candidates that stand still while it answers.

    Attributes:
        trips: of the next requests: how long they take to come here, and their answers back, in
            seconds.
        meanwhile: what others do once the next request is carried out, before its answer is there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trips: list[tuple[float, float]] = []
        self.meanwhile: list[Callable[[], Coroutine[None, None, object]]] = []

    async def _next(self, request: Request) -> Any:
        there, back = self.trips.pop(0) if self.trips else (0.0, 0.0)
        self.elapsed += there
        try:
            return await super()._next(request)
        finally:
            if self.meanwhile:
                await self.meanwhile.pop(0)()
            self.elapsed += back


class Election(RuleBasedStateMachine):
    """Candidates look at the lease whenever they get to it."""

    def __init__(self) -> None:
        super().__init__()
        self.server = SlowServer()
        self.candidates = {name: self.server.candidate(name) for name in CANDIDATES}

    @rule(
        who=candidates,
        faults=st.lists(faults, max_size=3),
        trips=st.lists(st.tuples(seconds, seconds), max_size=2),
        meanwhile=st.lists(candidates, max_size=2, unique=True),
    )
    def look(
        self, who: str, faults: list[str], trips: list[tuple[float, float]], meanwhile: list[str]
    ) -> None:
        others = [self.candidates[name]._try for name in meanwhile if name != who]
        self.server.meanwhile = [*others]
        self._play(self.candidates[who]._try(), faults, trips)

    @rule(who=candidates, fault=faults, trip=st.tuples(seconds, seconds))
    def release(self, who: str, fault: str, trip: tuple[float, float]) -> None:
        self._play(self.candidates[who].release(), [fault], [trip])

    def _play(
        self,
        scene: Coroutine[None, None, object],
        faults: list[str],
        trips: list[tuple[float, float]],
    ) -> None:
        self.server.faults, self.server.trips = list(faults), list(trips)
        asyncio.run(scene)
        self.server.faults, self.server.trips, self.server.meanwhile = [], [], []

    @rule(who=candidates)
    def restart(self, who: str) -> None:
        self.candidates[who] = self.server.candidate(f"{who}-{self.server.version}")

    @rule(seconds=st.sampled_from([0.5, 2.0, 4.9, 9.9, 15.0]))
    def time_passes(self, seconds: float) -> None:
        self.server.elapsed += seconds

    @invariant()
    def one_leads_at_most(self) -> None:
        assert sum(lease.is_held for lease in self.candidates.values()) <= 1


TestElection = Election.TestCase
