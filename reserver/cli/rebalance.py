"""`reserver rebalance`: validates, plans and carries out the descheduler's policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from reserver.cli import completion, failure, output
from reserver.cli.failure import ExitStatus
from reserver.cli.help import App
from reserver.cli.output import Report, ReportOption
from reserver.cli.plan_inputs import read_policy_file
from reserver.cli.rebalance_plan import plan
from reserver.cli.rebalance_run import run
from reserver.cli.table import counted
from reserver.errors import InvalidInput
from reserver.rebalance.arguments.evictor import SYSTEM_CRITICAL
from reserver.rebalance.policy_reader import PolicyReading, read

app = App()

_CLASSES = {"system-cluster-critical": SYSTEM_CRITICAL, "system-node-critical": 2_000_001_000}
"""The PriorityClasses that every cluster has."""


@app.callback()
def _rebalance() -> None:
    """Find pods that sit on the wrong node, by the policies of kubernetes-sigs/descheduler.

    Examples:
        reserver rebalance validate policy.yaml
        reserver rebalance plan --policy-config-file policy.yaml
        reserver rebalance run --policy-config-file policy.yaml --dry-run
    """


@app.command()
def validate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Policy files, or - for standard input.",
            autocompletion=completion.files,
        ),
    ],
    form: ReportOption = Report.TABLE,
) -> None:
    """Read policy files as the descheduler would, and name each field that is wrong or ignored.

    The rules are those of descheduler v0.36. The command also refuses YAML whose meaning depends on
    the reader, such as `yes` and 010, and warns of fields that the descheduler ignores in silence,
    such as an unknown or mis-cased field outside of `args`. It asks no cluster.

    Exit status: 0 all files are valid; 1 some are not, and the errors say why; 2 wrong usage.

    Examples:
        reserver rebalance validate policy.yaml && kubectl apply -k .
    """
    found = [(name, _read_one(name)) for name in files]
    _show(found, form)
    if any(reading.policy is None for _, reading in found):
        raise typer.Exit(ExitStatus.REFUSED)


def _read_one(name: str) -> PolicyReading:
    """Read a policy file without a cluster, so any PriorityClass may exist."""
    asked: list[InvalidInput] = []

    def value(priority_class: str) -> int:
        if priority_class not in _CLASSES:
            problem = f"no cluster is asked whether there is a PriorityClass {priority_class!r}"
            asked.append(InvalidInput("", problem, "look with kubectl get priorityclasses"))
        return _CLASSES.get(priority_class, SYSTEM_CRITICAL)

    found = read(read_policy_file(name), value)
    unknown = tuple({str(each): each for each in asked}.values())
    return found._replace(warnings=found.warnings + unknown)


def _show(found: Sequence[tuple[str, PolicyReading]], form: Report) -> None:
    """Print problems and warnings: on standard error, unless a program reads them."""
    valid = sum(reading.policy is not None for _, reading in found)
    if form is not Report.TABLE:
        files = [
            {
                "file": file,
                "valid": reading.policy is not None,
                "problems": [_document(problem) for problem in reading.problems],
                "warnings": [_document(warning) for warning in reading.warnings],
            }
            for file, reading in found
        ]
        output.document({"valid": valid == len(found), "files": files}, form)
        return
    for file, reading in found:
        for warning in reading.warnings:
            failure.report(f"{file}: warning: {warning}")
        for problem in reading.problems:
            failure.report(f"{file}: {problem}")
    problems = sum(len(reading.problems) for _, reading in found)
    warnings = sum(len(reading.warnings) for _, reading in found)
    typer.echo(f"{valid} valid, {counted(problems, 'problem')}, {counted(warnings, 'warning')}")


def _document(problem: InvalidInput) -> dict[str, str]:
    return {"field": problem.path, "problem": problem.problem, "remedy": problem.remedy}


app.command()(plan)
app.command()(run)
