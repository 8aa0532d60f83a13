"""Size and duration of a storm."""

from collections.abc import Mapping
from dataclasses import dataclass

FAULTS = (
    "kill-reserver",
    "restart-scheduler",
    "restart-apiserver",
    "restart-controllers",
    "cut-watch",
    "bind-faults",
    "freeze",
    "partition",
    "wrong-clock",
    "hostile",
)
RUNS = ("none", *FAULTS, "standby", "all")


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Size and duration of a storm.

    Attributes:
        nodes: nodes of 8 CPUs each.
        pods: pods created during the storm, without those that fill the nodes before it.
        reservations: reservations that the manager writes, if it finds room for so many.
        groups: reservations of the other manager, for pods that they do not name.
        whole_groups: whole nodes of each group; these nodes are additional to `nodes`, and empty
            before the storm.
        seconds: least duration of the storm, in seconds; then it settles.
        longest_seconds: most seconds until all faults have struck and all pods were created. On
            busy cores Reserver starts late, and a storm with fewer kills would prove less.
        settle_seconds: seconds in which owners may land after that.
        strikes: number of strikes by fault at instants; absent faults never strike.
        bind_fault_every: with bind faults, one in this many bindings fails.
    """

    nodes: int = 100
    pods: int = 2000
    reservations: int = 300
    groups: int = 60
    whole_groups: tuple[int, ...] = (1, 2, 1)
    seconds: float = 80.0
    longest_seconds: float = 240.0
    settle_seconds: float = 60.0
    strikes: Mapping[str, int]
    bind_fault_every: int = 10

    @property
    def cpu(self) -> int:
        """Capacity of all nodes, in millicores."""
        return (self.nodes + sum(self.whole_groups)) * NODE_CPU


NODE_CPU = 8000
"""CPU of one node, in millicores."""

FILL = 0.95
"""Share of each node's CPU that pods use before the storm."""

LEVEL = 0.97
"""Share of all CPU that pods, also pending ones, and reservations may take in the storm: so full
that large pods find only held room, yet the manager still finds some."""

POD_CPU = (250, 250, 500, 500, 750, 1000, 1000, 1500, 2000, 3000)
"""Requests of pods and reservations, in millicores, with their frequency."""

GROUP_CPU = (250, 500, 500, 750)
"""Requests of the pods of groups, in millicores."""

MEMORY_PER_CPU = 1 << 20
"""Bytes of memory for each millicore; the nodes have four times that."""
