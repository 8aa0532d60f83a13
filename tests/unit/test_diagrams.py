"""The diagrams of the documentation name what there is."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import yaml

from reserver.reservations.enums import Phase

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def words(name: str) -> set[str]:
    return set(re.findall(r"\w+", " ".join(ET.fromstring((DOCS / name).read_text()).itertext())))


def test_the_way_of_a_reservation_has_the_verbs_that_kube_scheduler_calls_and_its_phases() -> None:
    config = yaml.safe_load((ROOT / "scheduler-config/base/kube-scheduler.yaml").read_text())
    verbs = {config["extenders"][0][verb].title() for verb in ("filterVerb", "bindVerb")}
    assert verbs | {Phase.ACTIVE, Phase.CLAIMED} <= words("mechanism.svg")


def test_the_page_of_reservations_and_its_diagram_have_every_phase() -> None:
    section = (DOCS / "reservations.md").read_text().partition("## Phases")[2].partition("## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert set(Phase) <= words("phases.svg")
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(Phase)
