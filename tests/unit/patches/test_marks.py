"""The annotation that lists a pod's SchedPatches, as strangers may write it."""

import pytest

from reserver.patches.book import Mark, read_marks, show_marks
from reserver.patches.codec import MOST_PODS

MARKS = (Mark("fast", "uid-fast", 0), Mark("near", "uid-near", MOST_PODS - 1))


def test_marks_are_read_as_they_are_written() -> None:
    assert read_marks(show_marks(MARKS)) == MARKS


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{}",
        "[1]",
        '["fast/uid-fast"]',
        '["fast/uid-fast/-1"]',
        '["fast/uid-fast/1/2"]',
        f'["fast/uid-fast/{MOST_PODS}"]',
        '["fast/uid-fast/999999"]',
        '["fast/uid-fast/1000000"]',
        f'["fast/uid-fast/{"9" * 5_000}"]',
        f'["{"x" * 1_000_000}/uid/1"]',
    ],
)
def test_what_reserver_did_not_write_marks_nothing(text: str | None) -> None:
    assert read_marks(text) == ()
