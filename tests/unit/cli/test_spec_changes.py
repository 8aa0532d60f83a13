"""The changes of `reserver update` to a spec."""

from __future__ import annotations

from typing import Any

import pytest

from reserver.cli.serialization import merged

OWNERS = [{"pod": {"name": "a"}}]
WHOLE = {"owners": OWNERS, "nodes": {"count": 3, "selector": {"pool": "gpu"}}}
SLOTS = {"owners": OWNERS, "resources": {"cpu": "1", "memory": "1Gi"}, "slots": 2}


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        pytest.param(
            WHOLE,
            {"nodes": {"count": 4}},
            {"owners": OWNERS, "nodes": {"count": 4, "selector": {"pool": "gpu"}}},
            id="more nodes with the same labels",
        ),
        pytest.param(
            SLOTS,
            {"nodes": {"count": 1}},
            {"owners": OWNERS, "nodes": {"count": 1}},
            id="nodes instead of slots",
        ),
        pytest.param(
            WHOLE,
            {"resources": {"cpu": "1"}},
            {"owners": OWNERS, "resources": {"cpu": "1"}},
            id="slots instead of nodes",
        ),
        pytest.param(
            SLOTS,
            {"resources": {"cpu": "2"}},
            SLOTS | {"resources": {"cpu": "2", "memory": "1Gi"}},
            id="one resource of several",
        ),
    ],
)
def test_a_change_keeps_what_it_does_not_exclude(
    before: dict[str, Any], changes: dict[str, Any], after: dict[str, Any]
) -> None:
    assert merged(before, changes) == after
