"""The plugins that a policy can name, and where each can be enabled (setupplugins.go)."""

from __future__ import annotations

from reserver.wire.rebalance import strategyforms, utilizationform
from reserver.wire.rebalance.evictorform import DefaultEvictor
from reserver.wire.rebalance.loadform import LowNodeLoad
from reserver.wire.rebalance.parts import Args

EVICTOR = DefaultEvictor.__name__

_DESCHEDULE: tuple[type[Args], ...] = (
    strategyforms.PodLifeTime,
    strategyforms.RemoveFailedPods,
    strategyforms.RemovePodsHavingTooManyRestarts,
    strategyforms.RemovePodsViolatingInterPodAntiAffinity,
    strategyforms.RemovePodsViolatingNodeAffinity,
    strategyforms.RemovePodsViolatingNodeTaints,
)
_BALANCE: tuple[type[Args], ...] = (
    strategyforms.RemoveDuplicates,
    strategyforms.RemovePodsViolatingTopologySpreadConstraint,
    utilizationform.LowNodeUtilization,
    utilizationform.HighNodeUtilization,
    LowNodeLoad,
)

PLUGINS: dict[str, type[Args]] = {
    DefaultEvictor.__name__: DefaultEvictor,
    **{kind.__name__: kind for kind in _DESCHEDULE + _BALANCE},
}
"""The form of the arguments of each plugin, by name."""

POINTS: dict[str, frozenset[str]] = {
    "deschedule": frozenset(kind.__name__ for kind in _DESCHEDULE),
    "balance": frozenset(kind.__name__ for kind in _BALANCE),
    "filter": frozenset({EVICTOR}),
    "preevictionfilter": frozenset({EVICTOR}),
}
"""The plugins of each extension point."""
