"""The diagrams of the documentation are the output of their code."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hack.diagrams import DIAGRAMS
from reserver.reservations.enums import Phase

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_as_its_code_draws_it(name: str) -> None:
    assert (DOCS / name).read_text() == DIAGRAMS[name](), "run `make pictures`"


def test_the_page_of_reservations_and_its_diagram_have_every_phase() -> None:
    drawn = set(ET.fromstring(DIAGRAMS["phases.svg"]()).itertext())
    section = (DOCS / "reservations.md").read_text().partition("## Phases")[2].partition("## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert set(Phase) <= drawn
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(Phase)
