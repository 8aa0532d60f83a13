"""A rebalancer whose decision is given, and a cluster for it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from reserver.cluster.pod import PodName
from reserver.rebalance.capacity import Held
from reserver.rebalance.dump import COLLECTIONS
from reserver.rebalance.evictions import Evictions, Pace
from reserver.rebalance.measured_load import Rounds
from reserver.rebalance.outcomes import OutcomeReporter
from reserver.rebalance.plan import Plan, PlannedMove
from reserver.rebalance.pod_moves import PodMoves
from reserver.rebalance.policy_file import PolicyFile
from reserver.rebalance.round_input import Decision, RoundInput
from reserver.rebalance.rounds import Rebalancer
from tests.unit.k8s.fakes import ScriptedClient

POLICY = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
NODES = {"kind": "NodeList", "items": [{"metadata": {"name": "n1"}}]}
PODS = {
    "kind": "PodList",
    "items": [
        {
            "metadata": {"name": "web-0", "namespace": "shop", "uid": "uid-web-0"},
            "spec": {"nodeName": "n1"},
        }
    ],
}
REST: list[Any] = [{"kind": "List", "items": []}] * (len(COLLECTIONS) - 2)
CLUSTER = [NODES, PODS, *REST]
MOVE = PlannedMove(
    pod=PodName("shop", "web-0"),
    uid="uid-web-0",
    source="n1",
    target=None,
    strategy="S",
    profile="p",
)


HELD = {"n1": {"cpu": 500}}


class World:
    """A rebalancer with a given decision.

    Attributes:
        looks: the clusters that it decided on.
        slept: its waits, in seconds.
    """

    def __init__(
        self,
        path: Path,
        *script: Any,
        policy: str = POLICY,
        dry_run: bool = False,
        reserves_first: bool = False,
        moves: tuple[PlannedMove, ...] = (MOVE,),
    ) -> None:
        path.write_text(policy)
        self.client = ScriptedClient(*script)
        self.now = 1000.0
        self.looks: list[RoundInput] = []
        self.moves = moves
        reporter, pace = OutcomeReporter(self.client, "host"), Pace(1000, 1000)
        parts = (self.client, lambda: self.now, pace, reporter)
        self.rebalancer = Rebalancer(
            client=self.client,
            file=PolicyFile(path),
            evictions=Evictions(*parts),
            pod_moves=PodMoves(*parts) if reserves_first else None,
            decide=self.decide,
            held=self.held,
            clock=lambda: self.now,
            dry_run=dry_run,
        )

    async def held(self) -> Held:
        return HELD

    def decide(self, look: RoundInput, held: Held) -> Decision:
        assert held is HELD
        self.looks.append(look)
        rounds = {"p": Rounds({}, float(len(self.looks)))}
        return Decision(plan=Plan(moves=self.moves), rounds=rounds)

    @property
    def evicted(self) -> list[Any]:
        return [each.body for each in self.client.requests if each.path.endswith("/eviction")]


OWNED = {
    **PODS,
    "items": [
        {
            "metadata": {
                "name": name,
                "namespace": "shop",
                "uid": f"uid-{name}",
                "ownerReferences": [
                    {"kind": "StatefulSet", "name": "web", "uid": "u", "controller": True}
                ],
            },
            "spec": {"nodeName": "n1"},
        }
        for name in ("web-0", "web-1")
    ],
}
OTHER = replace(MOVE, pod=PodName("shop", "web-1"), uid="uid-web-1", target="n2")
NO_MOVES: dict[str, Any] = {"kind": "PodMoveList", "items": []}
