"""Reads policy files, and prints what is wrong with them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from reserver.cli import failure, output
from reserver.cli.documents import STDIN
from reserver.cli.failure import Failed, Status
from reserver.cli.options import Report
from reserver.cli.table import counted
from reserver.errors import InvalidInput
from reserver.rebalance.arguments.evictor import SYSTEM_CRITICAL
from reserver.wire.rebalance.document import MOST_BYTES
from reserver.wire.rebalance.policyform import Reading, read

_CLASSES = {"system-cluster-critical": SYSTEM_CRITICAL, "system-node-critical": 2_000_001_000}
"""The PriorityClasses that every cluster has."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A policy file, and what it says."""

    file: str
    reading: Reading

    @property
    def is_valid(self) -> bool:
        """Whether upstream and Reserver take it."""
        return self.reading.policy is not None


def raw(name: str) -> bytes:
    """Return a file, or standard input (``-``), one byte longer than a policy may be at most.

    Raises:
        Failed: it cannot be read.
    """
    try:
        if name == STDIN:
            return sys.stdin.buffer.read(MOST_BYTES + 1)
        with Path(name).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as exc:
        raise Failed(Status.USAGE, f"{name}: cannot be read: {exc.strerror}") from exc


def judge(names: Iterable[str]) -> list[Judged]:
    """Return what policy files say; no cluster is asked, so any PriorityClass may exist.

    Raises:
        Failed: a file cannot be read.
    """
    return [_judged(name) for name in names]


def _judged(name: str) -> Judged:
    asked: list[InvalidInput] = []

    def value(priority_class: str) -> int:
        if priority_class not in _CLASSES:
            problem = f"no cluster is asked whether there is a PriorityClass {priority_class!r}"
            asked.append(InvalidInput("", problem, "look with kubectl get priorityclasses"))
        return _CLASSES.get(priority_class, SYSTEM_CRITICAL)

    found = read(raw(name), value)
    unknown = tuple({str(each): each for each in asked}.values())
    return Judged(name, found._replace(warnings=found.warnings + unknown))


def show(judged: Sequence[Judged], form: Report) -> None:
    """Print what was found: problems and warnings to standard error, unless a program reads it."""
    if form is not Report.TABLE:
        files = [
            {
                "file": each.file,
                "valid": each.is_valid,
                "problems": [_told(problem) for problem in each.reading.problems],
                "warnings": [_told(warning) for warning in each.reading.warnings],
            }
            for each in judged
        ]
        output.document({"valid": all(each.is_valid for each in judged), "files": files}, form)
        return
    for each in judged:
        for warning in each.reading.warnings:
            failure.tell(f"{each.file}: warning: {warning}")
        for problem in each.reading.problems:
            failure.tell(f"{each.file}: {problem}")
    problems = sum(len(each.reading.problems) for each in judged)
    warnings = sum(len(each.reading.warnings) for each in judged)
    valid = sum(each.is_valid for each in judged)
    typer.echo(f"{valid} valid, {counted(problems, 'problem')}, {counted(warnings, 'warning')}")


def _told(problem: InvalidInput) -> dict[str, str]:
    return {"field": problem.path, "problem": problem.problem, "remedy": problem.remedy}
