"""The targets of the pages' references exist."""

import re
from pathlib import Path

import pytest
import yaml

from hack.programs import done
from reserver.cli import serve
from reserver.moves.phases import MoveReason
from reserver.provisioning import model as provisioning
from reserver.reservations.enums import Phase
from reserver.reservations.status import IDLE, NOT_REFILLED, ReservationState
from tests.pages import NOT_HERE, ROOT, commands

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
TESTS = "\n".join(path.read_text() for path in sorted(ROOT.glob("tests/**/test_*.py")))
ON_THE_DEMO = (
    "docs/configmap.md",  # the first: the demo's own broken entry is still there
    "docs/reservations.md",  # before README: its reservation is remembered by its name
    "README.md",
    "PACKAGE.md",
    "docs/grpc.md",
    "docs/manager.md",
    "docs/promises.md",
    "docs/python.md",
    "docs/quotas.md",
    "docs/rebalance.md",
    "docs/tutorial.md",
)
"""Pages whose commands run on the demo's cluster: tests/e2e/apart/test_pages.py."""
TASKS = ("docs/job.md", "docs/maintenance.md", "docs/nightly.md", "docs/rollout.md")
"""Pages with a story, all of which happens on the demo's cluster: the same file."""
ON_A_CLUSTER = (
    "README.md",
    "docs/autoscalers.md",
    "docs/configmap.md",
    "docs/grpc.md",
    "docs/managed-clusters.md",
    "docs/monitoring.md",
    "docs/moves.md",
    "docs/multi-tenancy.md",
    "docs/patches.md",
    "docs/rebalance.md",
    "docs/security-hardening.md",
)
"""Pages with commands for a real control plane: tests/e2e/apart/test_pages_cluster.py."""
REAL = (
    "kubectl apply -k",
    "kubectl get nodes,pods,",
    "kubectl -n reserver-system create rolebinding",
    "reserver drain",
    "reserver migrate",
    "reserver move ",
    "reserver rebalance plan",
)
"""Beginnings of commands for a real cluster, also on a page for the demo."""
BY_THEMSELVES = (
    "docs/backup-and-restore.md",
    "docs/certificates.md",
    "docs/cli.md",
    "docs/first-day.md",
    "docs/high-availability.md",
    "docs/install.md",
    "docs/troubleshooting.md",
    "docs/upgrade.md",
)
"""tests/e2e/test_cli.py; the rest in apart/, in files that name these pages."""
MOST_WORDS, MOST_WORDS_OF_A_PAGE, MOST_WORDS_OF_README = 33_000, 1_800, 700
_GENERATED = re.compile(
    r"\A# .+\n\n(?:Written|Made) by `make .*|<!-- [^>]*written by `make .*?<!-- end of .*?-->",
    re.IGNORECASE | re.DOTALL,
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not anchor or target.suffix != ".md" or anchor in _anchors(target), link


def _anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, as GitHub forms them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_tests_that_the_threat_model_names_are_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/threat-model.md").read_text()))
    assert named
    missing = {name for name in named if f"def {name}(" not in TESTS}
    assert not missing


def test_the_files_of_tests_that_are_named_are_there() -> None:
    named = re.compile(r"\b(?:unit|integration|property|contract|rights|load|e2e)/[\w/]*\w\.py\b")
    folders = (
        "*.md",
        "docs/**/*.md",
        "scheduler-config/**/*.yaml",
        "reserver/**/*.py",
        "hack/**/*.py",
    )
    texts = {path: path.read_text() for folder in folders for path in ROOT.glob(folder)}
    found = {(path.name, file) for path, text in texts.items() for file in named.findall(text)}
    assert len(found) > 10
    assert {each for each in found if not (ROOT / "tests" / each[1]).exists()} == set()


def test_every_page_has_a_place_on_the_site() -> None:
    nav = str(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    missing = {page.name for page in ROOT.glob("docs/*.md") if f"'{page.name}'" not in nav}
    assert not missing, "name them in the nav of mkdocs.yml"


def test_the_events_that_a_page_lists_are_those_of_the_code() -> None:
    """Each listed reason is in the code, so that a renamed reason is found."""
    page = (ROOT / "docs/conditions.md").read_text().partition("## Events")[2]
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    reasons = {reason for row in rows for reason in re.findall(r"`(\w+)`", row)}
    code = "\n".join(path.read_text() for path in ROOT.glob("reserver/**/*.py"))
    assert len(reasons) > 10
    assert not {reason for reason in reasons if f'"{reason}"' not in code}


def test_the_reasons_of_conditions_that_a_page_lists_are_those_of_the_code() -> None:
    page = (ROOT / "docs/conditions.md").read_text().partition("## Conditions")[2]
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    listed = {reason for row in rows for reason in re.findall(r"`(\w+)`", row)}
    code = "\n".join(path.read_text() for path in sorted(ROOT.glob("reserver/**/*.py")))
    said = {reason for _, reason in re.findall(r'\bsay\(("?\w+"?), "(\w+)"', code)}
    done = set(re.findall(r'Condition\("\w+", "(?:True|False)", "(\w+)"', code))
    phases = set(Phase) - {Phase.INVALID}
    backed = {ReservationState(phase, is_backed=False).reason for phase in phases} | {
        ReservationState(Phase.ACTIVE, is_backed=True).reason,
        *(IDLE, NOT_REFILLED),
        ReservationState(Phase.PENDING, is_backed=False, is_unplaced=True).reason,
        ReservationState(Phase.PENDING, is_backed=False, exceeds_quota=True).reason,
    }
    assert {"Accepted", "Patching"} <= said
    assert done
    assert listed == said | done | backed | set(MoveReason) | set(provisioning.ConditionReason)


@pytest.mark.parametrize("page", [str(p.relative_to(ROOT)) for p in PAGES])
def test_no_block_of_commands_is_passed_over(page: str) -> None:
    """Lines of `console` blocks after `$` are run: each block begins with one."""
    found = re.findall(
        r"^```console\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL
    )
    assert not [block for block in found if not block.startswith("$ ")]
    lines = [line for block in found for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands(page)) == len(lines)


@pytest.mark.parametrize("page", [str(p.relative_to(ROOT)) for p in PAGES])
def test_every_command_runs_in_ci(page: str) -> None:
    """Otherwise list the page above; a text that is not a literal command needs no `console`."""
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in commands(page):
        if command.line.startswith("make "):
            assert command.line.split()[1] in targets
        elif not command.line.startswith((*NOT_HERE, *REAL)):
            assert page in {*ON_THE_DEMO, *TASKS, *ON_A_CLUSTER, *BY_THEMSELVES}
        elif command.line.startswith(REAL):
            assert page in {*TASKS, *ON_A_CLUSTER, *BY_THEMSELVES}


def test_make_lists_what_most_people_need_on_a_small_terminal_and_all_on_request() -> None:
    few, every = (done("make", "-s", name, cwd=ROOT).stdout for name in ("help", "help-all"))
    assert len(few.splitlines()) <= 16
    assert max(map(len, few.splitlines())) <= 80
    targets = set(re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {line.split()[0] for line in every.splitlines()} == targets
    assert {"demo", "venv", "docs", "check", "help-all"} < set(few.split())


def test_flags_of_serve_on_a_page_go_together() -> None:
    """Commands that never end are in no `console` block; contradicting flags are read as None."""
    pattern = re.compile(r"^reserver serve ((?:.*\\\n)*.*)$", re.MULTILINE)
    found = [line for page in PAGES for line in pattern.findall(page.read_text())]
    assert len(found) > 1
    for line in found:
        assert serve.read_plainly(line.replace("\\\n", " ").split(), {}), line


def test_the_documentation_is_short() -> None:
    """Without the decisions, and without the parts that `make` generates."""
    pages = [page for page in ROOT.glob("docs/**/*.md") if page.parent.name != "adr"]
    words = {page.name: len(_GENERATED.sub("", page.read_text()).split()) for page in pages}
    assert words["cli-reference.md"] == words["grpc-reference.md"] == 0
    assert (
        200 < words["configuration.md"] < len((ROOT / "docs/configuration.md").read_text().split())
    )
    assert not {name: count for name, count in words.items() if count > MOST_WORDS_OF_A_PAGE}
    assert sum(words.values()) <= MOST_WORDS
    assert len((ROOT / "README.md").read_text().split()) <= MOST_WORDS_OF_README


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_column_of_a_table_has_a_heading(page: Path) -> None:
    heads = re.findall(r"^(\|.*\|)\n\|[-:| ]+\|$", page.read_text(), re.MULTILINE)
    assert not [head for head in heads if any(not cell.strip() for cell in head.split("|")[1:-1])]


SLURM = """ANY_NODES DAILY FLEX FORCE_START HOURLY IGNORE_JOBS LICENSE_ONLY MAGNETIC MAINT
NO_HOLD_JOBS_AFTER OVERLAP PART_NODES PURGE_COMP REPLACE REPLACE_DOWN SPEC_NODES STATIC_ALLOC
TIME_FLOAT USER_DELETE WEEKDAY WEEKEND WEEKLY Accounts AllowedPartitions BurstBuffer CoreCnt
Duration EndTime Features Groups Licenses MaxStartDelay NodeCnt Nodes PartitionName QOS
ReservationName Skip StartTime TRES TRESPerNode Users"""
"""The flags and fields of reservations in doc/man/man1/scontrol.1 of Slurm 26.11."""


def test_the_page_about_slurm_has_every_flag_and_field_once() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/slurm.md").read_text(), re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(SLURM.split())
