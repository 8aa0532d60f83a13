"""The faults of `make mutants` still apply to the present code."""

import pytest

from hack.mutants.mutant import ROOT, TESTS, Mutant, equivalent, picked, possible


@pytest.mark.parametrize("mutant", picked(), ids=lambda each: each.name)
def test_each_fault_that_was_picked_changes_one_place_and_has_tests(mutant: Mutant) -> None:
    text = (ROOT / mutant.path).read_text()
    assert mutant.applied(text) != text
    named = [path for tests in mutant.tests for path in tests.split()]
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_what_is_drawn_from_and_what_is_excused_is_there() -> None:
    named = [*TESTS, *(path for tests in TESTS.values() for path in tests)]
    assert [path for path in named if not (ROOT / path).exists()] == []
    assert equivalent().keys() <= {mutant.name for mutant in (*picked(), *possible())}
