"""Exceptions of a task group, which end a command or a watch with one cause."""

import pytest

from reserver.errors import ApiError, ConfigurationError, InvalidInput, cause, leaves

AWAY = ApiError(429, "TooManyRequests", "storage is (re)initializing")
BAD = InvalidInput("spec", "is missing", "write it")
FAULT = ValueError("a fault")


@pytest.mark.parametrize(
    ("error", "first"),
    [
        (AWAY, AWAY),
        (ExceptionGroup("tasks", [AWAY]), AWAY),
        (ExceptionGroup("tasks", [ExceptionGroup("more", [BAD]), AWAY]), BAD),
    ],
)
def test_a_group_of_expected_exceptions_has_the_first_as_its_cause(
    error: Exception, first: Exception
) -> None:
    assert cause(error, ApiError, InvalidInput) is first


def test_a_group_with_a_fault_stays_whole() -> None:
    group = ExceptionGroup("tasks", [AWAY, ExceptionGroup("more", [FAULT])])
    assert cause(group, ApiError, ConfigurationError) is group
    assert [*leaves(group)] == [AWAY, FAULT]
