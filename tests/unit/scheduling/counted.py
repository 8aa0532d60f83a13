"""Counts of work, and objects that cause the work."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from reserver.cluster.categorical import Categorical
from reserver.cluster.labels import LabelTable, Requirement, Selector
from reserver.cluster.pod import Pod
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from tests.builders import NAMESPACE

Written = dict[str, Any]


class Work:
    """Counts computed values and columns.

    Attributes:
        filled: values that were put into columns that are made anew.
        columns: columns that were made anew.
        asked: selectors that were applied to a table.
    """

    def __init__(self) -> None:
        self.filled = self.columns = self.asked = 0


def counting(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Return the work from now on."""
    counted = Work()
    fill, matching = Categorical.fill, LabelTable.matching

    def counting_fill(self: Categorical[str], rows: Sequence[int], values: Sequence[str]) -> None:
        counted.columns += 1
        counted.filled += len(values)
        fill(self, rows, values)

    def counting_matching(self: LabelTable, selector: Selector) -> Any:
        counted.asked += 1
        return matching(self, selector)

    monkeypatch.setattr(Categorical, "fill", counting_fill)
    monkeypatch.setattr(LabelTable, "matching", counting_matching)
    return counted


def selector(keys: Sequence[str], operator: str, *values: str) -> Selector:
    return Selector(tuple(Requirement(key, operator, frozenset(values)) for key in keys))


def keys(number: int) -> list[Written]:
    return [{"key": f"k{each}", "operator": "DoesNotExist"} for each in range(number)]


def written_pod(spec: Written, metadata: Written | None = None) -> Pod:
    container = {"name": "a", "resources": {"requests": {"cpu": "2"}}}
    containers = [container, *spec.get("containers", ())]
    whole = {
        "metadata": {"name": "w", "namespace": NAMESPACE, "uid": "w"} | (metadata or {}),
        "spec": spec | {"containers": containers},
    }
    return decode(PodObject, json.dumps(whole).encode()).value()
