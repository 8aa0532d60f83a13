"""`reserver rebalance validate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reserver.cli.main import app

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("policy*.yaml"))
BROKEN = """apiVersion: descheduler/v1alpha2
evictor: {}
profiles:
- pluginConfig:
  - {name: PodLifeTime, args: {maxPodLifetimeSeconds: 5}}
  - {name: DefaultEvictor, args: {priorityThreshold: {name: mine}}}
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_valid_and_without_a_warning(path: Path) -> None:
    result = CliRunner().invoke(app, ["rebalance", "validate", str(path)])
    assert (result.exit_code, result.output) == (0, "1 valid, 0 problems, 0 warnings\n")


def test_problems_and_warnings_are_told_apart_and_end_in_status_1() -> None:
    result = CliRunner().invoke(app, ["rebalance", "validate", "-"], input=BROKEN)
    assert result.exit_code == 1
    assert result.stdout == "0 valid, 1 problem, 2 warnings\n"
    warning, unknown, problem = result.stderr.splitlines()
    assert "whether there is a PriorityClass 'mine'" in unknown
    assert warning.startswith("reserver: -: warning: evictor: is not a field, and ignored;")
    assert problem.endswith(
        "args.maxPodLifetimeSeconds: is not a field; write maxPodLifeTimeSeconds"
    )


def test_a_program_reads_the_same(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(BROKEN.replace("Lifetime", "LifeTime"))
    arguments = ["rebalance", "validate", str(file), str(EXAMPLES[0]), "-o", "json"]
    result = CliRunner().invoke(app, arguments)
    reported = json.loads(result.stdout)
    assert (result.exit_code, reported["valid"]) == (0, True)
    assert [each["valid"] for each in reported["files"]] == [True, True]
    fields = [warning["field"] for warning in reported["files"][0]["warnings"]]
    assert fields == ["evictor", "profiles[0].pluginConfig[0]", ""]


def test_a_file_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["rebalance", "validate", f"{tmp_path}/none"])
    assert result.exit_code == 2
    assert "none: cannot be read: No such file" in result.stderr
