"""Strategies for pods that are to begin anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from reserver.rebalance.arguments.selecting import ALL, Choice, Selecting


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePodsHavingTooManyRestarts(Selecting):
    """Pods leave whose containers have restarted too often.

    Attributes:
        pod_restart_threshold: restarts of all containers of a pod from which it leaves; 1 or more.
        including_init_containers: those of init containers count as well.
        states: only pods in one of these states leave; empty for any.
    """

    NAME: ClassVar = "RemovePodsHavingTooManyRestarts"

    pod_restart_threshold: int
    including_init_containers: bool = False
    states: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionFilter:
    """What a condition of a pod's status must be; an empty field allows anything.

    Attributes:
        type: of the condition.
        status: ``True``, ``False`` or ``Unknown``.
        reason: of its last transition.
        min_s: seconds since then, at least; None allows any, and a condition without a time.
    """

    type: str = ""
    status: str = ""
    reason: str = ""
    min_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLifeTime(Selecting):
    """Pods leave that are too old, or in some state for too long.

    A pod meets each of the criteria that are given, and any item of a criterion.

    Attributes:
        owner_kinds: kinds of owners: with `include` one owner must have such a kind, with
            `exclude` none may.
        max_pod_life_time_seconds: pods that are older leave; None for any age.
        states: phases, reasons, and reasons of waiting and terminated containers.
        conditions: of their status.
        exit_codes: of terminated containers.
        including_init_containers: states and exit codes of init containers count as well.
        including_ephemeral_containers: states of ephemeral containers count as well.
    """

    NAME: ClassVar = "PodLifeTime"

    owner_kinds: Choice = ALL
    max_pod_life_time_seconds: int | None = None
    states: frozenset[str] = frozenset()
    conditions: tuple[ConditionFilter, ...] = ()
    exit_codes: frozenset[int] = frozenset()
    including_init_containers: bool = False
    including_ephemeral_containers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFailedPods(Selecting):
    """Pods in phase Failed leave.

    Attributes:
        exclude_owner_kinds: pods that have an owner of such a kind stay.
        min_pod_lifetime_seconds: younger pods stay.
        reasons: of the pod or a container; empty for any.
        exit_codes: of terminated containers; empty for any.
        including_init_containers: reasons and exit codes of init containers count as well.
    """

    NAME: ClassVar = "RemoveFailedPods"

    exclude_owner_kinds: frozenset[str] = frozenset()
    min_pod_lifetime_seconds: int = 3600
    reasons: frozenset[str] = frozenset()
    exit_codes: frozenset[int] = frozenset()
    including_init_containers: bool = False
