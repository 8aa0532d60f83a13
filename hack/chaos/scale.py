"""How large a storm is and how long it lasts."""

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
    """How large a storm is and how long it lasts.

    Attributes:
        nodes: how many, of 8 CPUs each.
        pods: how many are created during the storm, besides those that fill the nodes before it.
        reservations: how many the manager writes, if it finds room for so many.
        groups: how many another one writes for pods that it does not name.
        whole_groups: how many nodes are held whole, for each group of pods; these come beside
            `nodes`, and nothing is there before the storm.
        seconds: how long the storm lasts at least, in seconds; then it settles.
        longest_seconds: how long it may last until all faults have struck and all pods were
            created, in seconds. Other work on the same cores makes reserver start late, and a storm
            with fewer kills would prove less.
        settle_seconds: how long owners may take to land after that, in seconds.
        strikes: how often each fault strikes that comes at instants; those left out never do.
        bind_fault_every: with bind faults, one binding of so many goes wrong.
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
"""Of one node, in millicores."""

FILL = 0.95
"""Share of each node's CPU that pods use before the storm."""

LEVEL = 0.97
"""Share of all CPU that pods, waiting ones included, and reservations may take in the storm: so
full that large pods find room only where it is held, yet the manager still finds some."""

POD_CPU = (250, 250, 500, 500, 750, 1000, 1000, 1500, 2000, 3000)
"""What pods and reservations ask for, in millicores, as often as it stands here."""

GROUP_CPU = (250, 500, 500, 750)
"""What each pod of a group asks for, in millicores."""

MEMORY_PER_CPU = 1 << 20
"""Bytes of memory that go with a millicore; the nodes have four times that."""
