"""Strategies that restart pods by evicting them."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from reserver.errors import InvalidInput
from reserver.rebalance.arguments.base import (
    ALL,
    Choice,
    Int32,
    PolicyPart,
    Problems,
    Selecting,
    UInt,
    among,
    one_choice,
)


class RemovePodsHavingTooManyRestarts(Selecting, frozen=True):
    """Pods leave whose containers have restarted too often.

    Attributes:
        pod_restart_threshold: restarts of all containers of a pod from which it leaves; 1 or more.
        including_init_containers: restarts of init containers count as well.
        states: only pods in one of these states leave; empty for any.
    """

    NAME: ClassVar[str] = "RemovePodsHavingTooManyRestarts"

    pod_restart_threshold: Int32 = 0
    including_init_containers: bool = False
    states: frozenset[str] = frozenset()

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        yield from super().problems()
        if self.pod_restart_threshold < 1:
            problem = f"{self.pod_restart_threshold} is less than 1"
            yield InvalidInput("podRestartThreshold", problem, "write the restarts to tolerate")
        yield from among("states", self.states, ["CrashLoopBackOff", "Running"])


class ConditionFilter(PolicyPart, frozen=True):
    """A filter of pod conditions; an empty field allows any value.

    Attributes:
        type: of the condition.
        status: ``True``, ``False`` or ``Unknown``.
        reason: of its last transition.
        min_s: seconds since that transition, at least; None also allows a condition without a time.
    """

    type: str = ""
    status: str = ""
    reason: str = ""
    min_s: UInt | None = msgspec.field(default=None, name="minTimeSinceLastTransitionSeconds")


_LIFE_STATES = (
    *("Running", "Pending", "Succeeded", "Failed", "Unknown"),
    *("NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError"),
    *("PodInitializing", "ContainerCreating", "ImagePullBackOff", "CrashLoopBackOff"),
    *("CreateContainerConfigError", "ErrImagePull", "CreateContainerError", "InvalidImageName"),
    *("OOMKilled", "Error", "Completed", "DeadlineExceeded", "Evicted", "ContainerCannotRun"),
    "StartError",
)


class PodLifeTime(Selecting, frozen=True):
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

    NAME: ClassVar[str] = "PodLifeTime"

    owner_kinds: Choice = ALL
    max_pod_life_time_seconds: UInt | None = None
    states: frozenset[str] = frozenset()
    conditions: tuple[ConditionFilter, ...] = ()
    exit_codes: frozenset[Int32] = frozenset()
    including_init_containers: bool = False
    including_ephemeral_containers: bool = False

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        yield from super().problems()
        yield from one_choice("ownerKinds", self.owner_kinds)
        yield from among("states", self.states, _LIFE_STATES)
        for index, each in enumerate(self.conditions):
            if each == ConditionFilter():
                remedy = "write type, status, reason or minTimeSinceLastTransitionSeconds"
                yield InvalidInput(f"conditions[{index}]", "has no criterion", remedy)
        criteria = (self.states, self.conditions, self.exit_codes)
        if self.max_pod_life_time_seconds is None and not any(criteria):
            remedy = "write maxPodLifeTimeSeconds, states, conditions or exitCodes"
            yield InvalidInput("", "no criterion is given", remedy)


class RemoveFailedPods(Selecting, frozen=True):
    """Pods in phase Failed leave.

    Attributes:
        exclude_owner_kinds: pods that have an owner of such a kind stay.
        min_pod_lifetime_seconds: younger pods stay.
        reasons: of the pod or a container; empty for any.
        exit_codes: of terminated containers; empty for any.
        including_init_containers: reasons and exit codes of init containers count as well.
    """

    NAME: ClassVar[str] = "RemoveFailedPods"

    exclude_owner_kinds: frozenset[str] = frozenset()
    min_pod_lifetime_seconds: UInt = 3600
    reasons: frozenset[str] = frozenset()
    exit_codes: frozenset[Int32] = frozenset()
    including_init_containers: bool = False
