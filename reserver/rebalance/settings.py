"""The settings of `reserver rebalance run`: what each means, and which values cannot work."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from reserver.base.schedule import Schedule
from reserver.errors import ConfigurationError, InvalidInput
from reserver.k8s.objects import move_windows
from reserver.settings.flags import (
    check_host,
    check_name,
    declared,
    flag,
    parse_address,
    parse_seconds,
)
from reserver.settings.serve import LogLevel


class Compat(StrEnum):
    """The way a policy is judged."""

    PLAN = "plan"
    """As one plan."""

    UPSTREAM = "upstream"
    """As upstream's code judges it, quirks included."""


COMPATS = "plan|upstream"
"""For help."""


def read_compat(flag: str, text: str) -> Compat:
    """Return the value of a flag; `sound`, the former name of `plan`, comes with a warning.

    Raises:
        ConfigurationError: there is no such way.
    """
    if text.lower() == "sound":
        warnings.warn(f"{flag} sound is now {flag} plan", FutureWarning, stacklevel=2)
        return Compat.PLAN
    try:
        return Compat(text.lower())
    except ValueError:
        raise ConfigurationError(f"{flag}: {text!r} is none of plan and upstream") from None


class Mode(StrEnum):
    """The precondition of an eviction (as `moves.phases.MoveMode`)."""

    EVICT_ONLY = "evict-only"
    """Nothing: a round evicts."""

    RESERVE_FIRST = "reserve-first"
    """A seat: a round writes PodMoves."""

    SURGE_FIRST = "surge-first"
    """A copy that is ready on the seat, of pods that can surge: a round writes PodMoves."""


def check_goal(flag: str, compat: Compat, mode: Mode) -> None:
    """Refuse settings with which no round makes room or empties nodes.

    Args:
        flag: the flag of the goal, such as ``--make-room``.
        compat: the rules that judge a policy.
        mode: the precondition of an eviction.

    Raises:
        ConfigurationError: the mode holds no room, or upstream's rules decide, which have no goal.
    """
    if mode is Mode.EVICT_ONLY:
        problem = "holds room before pods leave; give --mode reserve-first or surge-first"
        raise ConfigurationError(f"{flag}: {problem}")
    if compat is not Compat.PLAN:
        problem = "is unknown to the descheduler; leave out --compat upstream"
        raise ConfigurationError(f"{flag}: {problem}")


_FASTEST = 1000.0
_MOST_GAIN = 100.0

MOST_MOVES = 1_000_000
"""The largest bound on the moves of a plan."""


_duration = partial(flag, metavar="DURATION", read=parse_seconds)


def _check_rate(flag: str, rate: float) -> None:
    if not 0 < rate <= _FASTEST:
        raise ConfigurationError(
            f"{flag}: {rate} is not a rate; write a number above 0, up to 1000"
        )


def _check_gain(flag: str, gain: float) -> None:
    if not 0 <= gain <= _MOST_GAIN:
        raise ConfigurationError(f"{flag}: {gain} is not a gain; write a number from 0 to 100")


def _window(flag: str, text: str) -> Schedule:
    try:
        return move_windows.parse(text)
    except InvalidInput as exc:
        raise ConfigurationError(str(exc.under(flag))) from exc


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceSettings:
    """The settings of `reserver rebalance run`; the descheduler's settings keep their names.

    Raises:
        ConfigurationError: a setting cannot work; the error names the value and the remedy.
    """

    policy_config_file: Path | None = flag(
        "Policy (descheduler/v1alpha2), read again before each round."
    )
    descheduling_interval: float = _duration(
        "Time from the start of a round to the next. Default: one round.", default=0.0
    )
    make_room: bool = flag(
        "Instead of following the policy, make and hold room for pending pods that fit "
        "nowhere. The policy's first profile still says which pods may be evicted.",
        default=False,
    )
    defragment: bool = flag(
        "Instead of following the policy, empty as many nodes as possible, and cordon them "
        "meanwhile. Without an interval: rounds until no node can be emptied.",
        default=False,
    )
    hand_over: bool = flag(
        "With --defragment: leave emptied nodes cordoned, with the annotation "
        "reserver.io/emptied, for an autoscaler to remove. Default: uncordon them.",
        default=False,
    )
    most_moves: int | None = flag(
        "Most moves of a round, also if the policy allows more. With --defragment and no "
        "interval: of all rounds.",
        metavar="NUMBER",
        most=MOST_MOVES,
    )
    dry_run: bool = flag("Log which pods would be evicted, and evict none.", default=False)
    compat: Compat = flag(
        "Judge the policy as one plan, or pod by pod as the descheduler does. Default: plan.",
        default=Compat.PLAN,
        metavar=COMPATS,
        read=read_compat,
    )
    mode: Mode = flag(
        "Precondition of an eviction: none, a seat for the replacement, or with surge-first a "
        "ready copy on that seat, if the pod can surge.",
        default=Mode.EVICT_ONLY,
    )
    without_holds: bool = flag(
        "Ignore reservations: for clusters without `reserver serve`.", default=False
    )
    move_windows: tuple[Schedule, ...] = flag(
        "When rounds move pods: cron, duration and zone, such as '0 22 * * * 6h "
        "Europe/Berlin'. Default: at any time.",
        default=(),
        metavar="WINDOW",
        read=_window,
    )
    least_gain: float = flag(
        "Leave out moves of LowNodeUtilization and LowNodeLoad that gain fewer percentage "
        "points, measured on the fuller one of both nodes.",
        default=0.0,
        check=_check_gain,
    )
    client_connection_qps: float = flag("Evictions per second.", default=5.0, check=_check_rate)
    client_connection_burst: int = flag(
        "Evictions at once, above that rate.", default=10, most=1000
    )
    leader_elect: bool = flag(
        "Stand by while another holds the Lease; needs an interval.", default=False
    )
    leader_elect_lease_duration: float = _duration(
        "How long a Lease that is not renewed keeps others out. Default: 2m17s.", default=137.0
    )
    leader_elect_renew_deadline: float = _duration(
        "How long to go on without renewing the Lease. Default: 1m47s.", default=107.0
    )
    leader_elect_retry_period: float = _duration(
        "How often to renew the Lease, or try to take it. Default: 26s.", default=26.0
    )
    leader_elect_resource_name: str = flag(
        "Name of the Lease.", default="reserver-rebalance", check=check_name
    )
    leader_elect_resource_namespace: str = flag(
        "Namespace of the Lease.", default="reserver-system", check=check_name
    )
    health_address: tuple[str, int] | None = flag(
        "Serve /healthz and /metrics here over plain HTTP, e.g. 0.0.0.0:10258.",
        metavar="ADDRESS:PORT",
        read=parse_address,
        check=check_host,
    )
    log_level: LogLevel = flag("Lowest level to log.", default=LogLevel.INFO)

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        for each in declared(self):
            try:
                each.check(getattr(self, each.field))
            except InvalidInput as exc:
                raise ConfigurationError(str(exc)) from exc
        self._check_goal()
        if self.client_connection_burst < 1:
            raise ConfigurationError("--client-connection-burst: is 0; write 1 or more")
        if self.leader_elect and not self.descheduling_interval:
            raise ConfigurationError(
                "--leader-elect: needs --descheduling-interval, too; a single round needs no Lease"
            )
        lasts, deadline = self.leader_elect_lease_duration, self.leader_elect_renew_deadline
        if not lasts > deadline > self.leader_elect_retry_period > 0:
            raise ConfigurationError(
                "--leader-elect-lease-duration: has to exceed --leader-elect-renew-deadline, and "
                "that --leader-elect-retry-period"
            )

    def _check_goal(self) -> None:
        goals = {"--make-room": self.make_room, "--defragment": self.defragment}
        asked = [flag for flag, is_asked in goals.items() if is_asked]
        if not asked and self.policy_config_file is None:
            raise ConfigurationError(
                "--policy-config-file: is missing; write the policy's path, or give --make-room "
                "or --defragment"
            )
        if len(asked) > 1:
            raise ConfigurationError("--defragment: excludes --make-room; leave one out")
        if self.hand_over and not self.defragment:
            raise ConfigurationError("--hand-over: goes with --defragment; give it, too")
        for goal in asked:
            check_goal(goal, self.compat, self.mode)
