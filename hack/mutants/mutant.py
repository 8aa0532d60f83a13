"""Mutants: picked by hand, or drawn at random."""

from __future__ import annotations

import ast
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PICKED = Path(__file__).parent / "picked.json"
EQUIVALENT = Path(__file__).parent / "equivalent.json"

_UNIT, _PROPERTY = "tests/unit", "tests/property"
TESTS = {
    "reserver/reservations/": (f"{_UNIT}/reservations", f"{_UNIT}/scheduling", _PROPERTY),
    "reserver/scheduling/": (
        f"{_UNIT}/scheduling",
        _PROPERTY,
        f"{_UNIT}/extender",
        f"{_UNIT}/stores",
    ),
    "reserver/moves/": (f"{_UNIT}/moves", _PROPERTY),
    "reserver/cluster/lending.py": (
        f"{_UNIT}/cluster",
        f"{_UNIT}/scheduling",
        f"{_PROPERTY}/test_lending.py",
    ),
    "reserver/extender/bindings.py": (f"{_UNIT}/extender", "tests/integration"),
    "reserver/extender/placer.py": (f"{_UNIT}/extender", f"{_UNIT}/scheduling", f"{_UNIT}/moves"),
    "reserver/extender/recaller.py": (f"{_UNIT}/extender",),
    "reserver/maintenance/": (f"{_UNIT}/maintenance",),
}
"""The tests of the mutated files, the most sensitive first."""

_OTHER: dict[type[ast.AST], type[Any]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """A fault.

    Attributes:
        name: of one that is listed.
        path: the file, from the checkout's root.
        old: what stands there; of a picked one, once.
        new: what stands there instead.
        tests: where it may be noticed, in this order.
        at: where it stands, in characters; None to look for it.
    """

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    at: int | None = None

    def applied(self, text: str) -> str:
        """Return the file's text with the fault.

        Raises:
            ValueError: the changed text is missing, or there more than once.
        """
        found = text.count(self.old)
        if self.at is None and found != 1:
            raise ValueError(f"{self.name}: {self.path} has what it changes {found} times")
        at = text.index(self.old) if self.at is None else self.at
        return text[:at] + self.new + text[at + len(self.old) :]


def picked() -> list[Mutant]:
    """Return the mutants that were picked by hand."""
    listed = json.loads(PICKED.read_text())
    return [Mutant(**{**each, "tests": tuple(each["tests"])}) for each in listed]


def equivalent() -> dict[str, str]:
    """Return the names of equivalent mutants, each with the reason."""
    reasons: dict[str, str] = json.loads(EQUIVALENT.read_text())
    return reasons


def possible() -> Iterator[Mutant]:
    """Yield all that may be drawn: one operator, condition or number changed."""
    for start, tests in TESTS.items():
        paths = sorted((ROOT / start).glob("*.py")) if start.endswith("/") else [ROOT / start]
        for path in paths:
            yield from _of(str(path.relative_to(ROOT)), path.read_text(), tests)


def _of(path: str, text: str, tests: tuple[str, ...]) -> Iterator[Mutant]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines(keepends=True)
    for where, node in _within("", ast.parse(text)):
        for changed in _changed(node):
            old = ast.get_source_segment(text, node)
            if old is None or not isinstance(node, ast.expr):
                continue
            before = lines[node.lineno - 1].encode()[: node.col_offset].decode()
            new = f"({ast.unparse(changed)})"
            short = " ".join(old.split())
            name = f"{path} {where}: {short} -> {ast.unparse(changed)}"
            yield Mutant(name, path, old, new, tests, starts[node.lineno - 1] + len(before))


def _within(where: str, tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield each node with the function that it is in; no annotations and no texts in texts."""
    for name, value in ast.iter_fields(tree):
        if name in {"annotation", "returns", "decorator_list", "format_spec"}:
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr):
                continue
            inner = where
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{where}.{node.name}".lstrip(".")
            if inner:
                yield inner, node
                yield from _within(inner, node)


def _changed(node: ast.AST) -> Iterator[ast.expr]:
    """Yield an expression with one thing changed."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OTHER:
        changed = copy.deepcopy(node)
        changed.ops[0] = _OTHER[type(node.ops[0])]()
        yield changed
    elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in _OTHER:
        other = copy.deepcopy(node)
        other.op = _OTHER[type(node.op)]()
        yield other
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield copy.deepcopy(node.operand)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(ast.Constant(value=True), node.body, node.orelse)
        yield ast.IfExp(ast.Constant(value=False), node.body, node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
