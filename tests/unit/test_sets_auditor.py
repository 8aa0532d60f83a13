"""The auditor of the race for room finds what must not be."""

import json
from typing import Any

import pytest

from hack.sets.auditor import Auditor


def text(node: str = "n", cpu: int = 1) -> str:
    return json.dumps({"node": node, "resources": {"cpu": str(cpu)}})


def item(name: str, node: str = "n") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": json.loads(text(node))}


@pytest.fixture
def auditor() -> Auditor:
    return Auditor(parts=2, cpu=2)


def test_whole_sets_and_what_others_write_are_fine(auditor: Auditor) -> None:
    auditor.see_keys("a", {"race1-0": text(), "race1-1": text(), "web": "[]"})
    auditor.see_keys("a", {"race1-1": text()})  # Released, part by part.
    auditor.see_keys("a", {})
    auditor.see_object("ADDED", item("race2-0"))
    auditor.see_object("ADDED", item("race2-1"))
    auditor.see_object("DELETED", item("race2-0"))
    auditor.end()
    assert not auditor.wrong
    assert auditor.writes == 6


def test_half_a_set_is_wrong_at_once_in_a_configmap_and_in_the_end_of_objects(
    auditor: Auditor,
) -> None:
    auditor.see_keys("a", {"race1-0": text()})
    assert auditor.wrong.pop() == "half a set: race1 has 1"
    auditor.see_keys("a", {})
    auditor.see_object("ADDED", item("race2-0"))
    assert not auditor.wrong
    auditor.end()
    assert auditor.wrong == ["half a set is left: race2 has 1"]


def test_more_than_a_node_has_is_wrong_whichever_store_holds_it(auditor: Auditor) -> None:
    auditor.see_keys("a", {"race1-0": text(cpu=1), "race1-1": text("m")})
    auditor.see_object("ADDED", item("race2-0"))
    auditor.see_object("ADDED", item("race2-1", "m"))
    assert not auditor.wrong
    auditor.see_object("ADDED", item("race3-0"))
    assert auditor.wrong == ["too much is held: 3 CPUs of n"]
