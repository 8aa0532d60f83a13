"""The pages about the command line name what there is."""

from __future__ import annotations

from hack.cli_reference import PAGE, page


def test_the_reference_is_what_the_commands_say() -> None:
    assert page() == PAGE.read_text(), "run `make cli-reference`"
