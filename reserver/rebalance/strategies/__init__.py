"""The strategies, with the names of upstream's descheduler."""

from reserver.rebalance.plan_state import PlanState
from reserver.rebalance.upstream_state import UpstreamState

StrategyState = PlanState | UpstreamState
"""The cluster as a strategy of both states sees it."""
