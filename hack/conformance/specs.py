"""Reads the results of upstream's specs, and finds specs that fail only with Reserver."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

PASSED = "passed"

Outcomes = Mapping[str, str]
"""The state that Ginkgo reports, by the name of a spec."""

_SPEC = "It"


class SuiteFault(Exception):
    """The specs were not run: the message says why, for a person."""


def read(report: str) -> dict[str, str]:
    """Return the outcomes in Ginkgo's JSON report, without specs that its filters left out.

    Raises:
        SuiteFault: what comes before or after all specs failed, or there were no specs.
    """
    outcomes = {}
    for suite in json.loads(report):
        for each in suite["SpecReports"]:
            state, said = each["State"], each.get("Failure", {}).get("Message", "")
            if each["LeafNodeType"] != _SPEC:
                if state != PASSED:
                    raise SuiteFault(f"{each['LeafNodeType']} {state}: {said[:500]}")
            elif state not in {"skipped", "pending"} or said:
                outcomes[_name(each)] = state
    if not outcomes:
        raise SuiteFault("no spec was run")
    return outcomes


def worse(alone: Outcomes, ours: Outcomes) -> dict[str, str]:
    """Return what passes with kube-scheduler alone and not with Reserver, and its state there."""
    return {
        name: ours.get(name, "not run")
        for name, state in sorted(alone.items())
        if state == PASSED and ours.get(name) != PASSED
    }


def share(outcomes: Outcomes) -> tuple[int, int]:
    """Return how many passed, and how many were run."""
    return sum(state == PASSED for state in outcomes.values()), len(outcomes)


def _name(spec: Mapping[str, Any]) -> str:
    return " ".join([*(spec.get("ContainerHierarchyTexts") or []), spec["LeafNodeText"]])
