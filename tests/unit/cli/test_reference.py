"""The pages about the command line name what there is."""

from __future__ import annotations

from hack import configuration_reference as configuration
from hack.cli_reference import PAGE, page


def test_the_reference_is_what_the_commands_say() -> None:
    assert page() == PAGE.read_text(), "run `make cli-reference`"


def test_the_fields_of_the_configuration_file_are_those_that_the_settings_declare() -> None:
    assert configuration.page() == configuration.PAGE.read_text(), "run `make cli-reference`"
    assert configuration.schema() == configuration.SCHEMA.read_text(), "run `make cli-reference`"
