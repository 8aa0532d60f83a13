"""However requests are lost and processes paused: never do two lead at once."""

import asyncio

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.unit.kube.leases import LeaseServer

CANDIDATES = ("a", "b", "c")
candidates = st.sampled_from(CANDIDATES)


class Election(RuleBasedStateMachine):
    """Candidates look at the lease whenever they get to it."""

    def __init__(self) -> None:
        super().__init__()
        self.server = LeaseServer()
        self.candidates = {name: self.server.candidate(name) for name in CANDIDATES}

    @rule(
        who=candidates,
        faults=st.lists(st.sampled_from(["", "lost", "unanswered"]), max_size=3),
    )
    def look(self, who: str, faults: list[str]) -> None:
        self.server.faults = list(faults)
        asyncio.run(self.candidates[who]._try())
        self.server.faults = []

    @rule(who=candidates, fault=st.sampled_from(["", "lost", "unanswered"]))
    def release(self, who: str, fault: str) -> None:
        self.server.faults = [fault]
        asyncio.run(self.candidates[who].release())
        self.server.faults = []

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
