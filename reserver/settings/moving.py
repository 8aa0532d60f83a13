"""The settings of moves: whether, when, and how many at once."""

from __future__ import annotations

from dataclasses import dataclass

from reserver.errors import ConfigurationError
from reserver.k8s.objects import move_windows
from reserver.settings.flags import NO_PERCENT, InFile, Stage, check_percent, setting
from reserver.settings.installation import Installation

MOST_MIGRATING = 100_000
"""The largest limit on moves under way."""


def _check_limit(flag: str, most: int) -> None:
    if not 0 <= most <= MOST_MIGRATING:
        raise ConfigurationError(f"{flag}: {most} is no limit; write 0 to {MOST_MIGRATING}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSettings(Installation):
    """Whether PodMoves are carried out, when, and how many at once.

    The names of the limits are those of Koordinator's MigrationController.
    """

    pod_moves: bool = setting(
        "Carry out PodMoves, which evict pods. Needs the CRD and the rights of "
        "scheduler-config/components/moves.",
        default=False,
        in_file=InFile("featureGates.PodMoves", stage=Stage.BETA),
    )
    surge_moves: bool = setting(
        "Carry out PodMoves of mode SurgeFirst, which make copies of pods. Needs --pod-moves "
        "and the rights of scheduler-config/components/surge.",
        default=False,
        in_file=InFile("featureGates.SurgeMoves", stage=Stage.ALPHA),
    )
    move_windows: str = setting(
        "When PodMoves may evict pods: a list of windows, each with cron, duration, timeZone, "
        "namespaceSelector and nodeSelector. Default: at any time.",
        default="[]",
        metavar="JSON",
        check=move_windows.check,
        in_file=InFile(
            "moveWindows", is_live=True, read=move_windows.read_list, show=move_windows.show_list
        ),
    )
    max_migrating_per_node: int = setting(
        "Pods of a namespace that leave a node at once, of all namespaces less than twice as "
        "many; 0: no limit.",
        default=2,
        most=MOST_MIGRATING,
        check=_check_limit,
        in_file=InFile("moveLimits.maxMigratingPerNode", is_live=True),
    )
    max_migrating_per_namespace: int = setting(
        "Pods of a namespace that are moved at once; 0: no limit.",
        default=0,
        most=MOST_MIGRATING,
        check=_check_limit,
        in_file=InFile("moveLimits.maxMigratingPerNamespace", is_live=True),
    )
    max_migrating_globally: int = setting(
        "Pods that are moved at once; 0: no limit.",
        default=0,
        most=MOST_MIGRATING,
        check=_check_limit,
        in_file=InFile("moveLimits.maxMigratingGlobally", is_live=True),
    )
    max_migrating_per_workload: str = setting(
        "Pods of a workload that are moved at once, at least one: a share, such as 10%; none: "
        "1 of fewer than 4, 2 of up to 10, a tenth of more.",
        default=NO_PERCENT,
        metavar="PERCENT",
        check=check_percent,
        in_file=InFile("moveLimits.maxMigratingPerWorkload", is_live=True),
    )
