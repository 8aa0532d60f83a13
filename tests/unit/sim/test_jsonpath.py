"""The JSON paths of printer columns."""

from __future__ import annotations

import pytest

from reserver_demo.apiserver.jsonpath import first
from reserver_demo.apiserver.resources import RESOURCES

STATUS = {
    "used": {"held.cpu": "60"},
    "placements": [{"node": "a"}, {"node": "b"}],
    "conditions": [{"type": "Valid", "reason": "x"}, {"type": "Backed", "reason": "RoomHeld"}],
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (r".status.used.held\.cpu", "60"),
        (".status.placements[*].node", "a"),
        (".status.placements[1].node", "b"),
        (".status.placements[7].node", None),
        ('.status.conditions[?(@.type=="Backed")].reason', "RoomHeld"),
        ('.status.conditions[?(@.type=="None")].reason', None),
        (".status.none.deeper", None),
        (".status.used[*]", None),
    ],
)
def test_a_path_leads_to_the_first_of_what_it_names(path: str, expected: str | None) -> None:
    assert first({"status": STATUS}, path) == expected


def test_a_path_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="no path of this form"):
        first({}, ".status..deep")


def test_the_paths_of_all_columns_are_of_a_known_form() -> None:
    paths = [column["jsonPath"] for each in RESOURCES for column in each.printer_columns]
    assert paths
    for path in paths:
        first({}, path)
