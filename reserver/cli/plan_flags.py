"""The flags of `reserver rebalance plan`: what each means, and which do not go together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from reserver.cli import completion, picture
from reserver.cli.failure import Failed, Status
from reserver.cli.options import Goal
from reserver.flags import Flag
from reserver.rebalance.modes import COMPATS, Compat, read_compat

_LONGEST_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFlags:
    """The flags of `reserver rebalance plan`.

    Raises:
        Failed: some do not go together.
    """

    policy_config_file: Annotated[
        str,
        Flag(
            "Policy of the descheduler (descheduler/v1alpha2); - for standard input.",
            metavar="FILE",
            complete=completion.files,
        ),
    ] = ""
    make_room: Annotated[bool, Flag("Plan room for pending pods instead of a policy.")] = False
    pods: Annotated[
        str,
        Flag(
            "With --make-room: Pods or Reservations to make room for; - for standard input.",
            metavar="FILE",
            complete=completion.files,
        ),
    ] = ""
    together: Annotated[bool, Flag("With --make-room: make room for all, or for none.")] = False
    defragment: Annotated[bool, Flag("Empty as many nodes as possible instead of a policy.")] = (
        False
    )
    compat: Annotated[
        Compat,
        Flag(
            "Judge a policy as one plan, or as upstream's code does. Default: plan.",
            metavar=COMPATS,
            read=read_compat,
        ),
    ] = Compat.PLAN
    without_holds: Annotated[bool, Flag("Ignore what reservations hold.")] = False
    solver_seconds: Annotated[
        float, Flag("Seconds to look for fewer moves, or prove there are none.", most=_LONGEST_S)
    ] = 0.0
    picture: Annotated[
        Path | None, Flag("Also draw the plan into a file: .svg or .html.", metavar="FILE")
    ] = None
    detailed_exitcode: Annotated[bool, Flag("Exit with 0: no moves; 1: an error; 2: moves.")] = (
        False
    )

    def check(self) -> None:
        """Refuse what does not go together.

        Raises:
            Failed: something does not.
        """
        if self.make_room and self.defragment:
            raise Failed(Status.USAGE, "--defragment: does not go with --make-room; leave one out")
        if not (self.policy_config_file or self.make_room or self.defragment):
            remedy = "give a policy's file, --make-room or --defragment"
            raise Failed(Status.USAGE, f"--policy-config-file: is missing; {remedy}")
        if (self.pods or self.together) and not self.make_room:
            raise Failed(Status.USAGE, "--pods, --together: go with --make-room; give it, too")
        picture.check(self.picture)

    @property
    def goal(self) -> Goal:
        """What the plan is to reach."""
        if self.make_room:
            return Goal.MAKE_ROOM
        return Goal.DEFRAGMENT if self.defragment else Goal.POLICY
