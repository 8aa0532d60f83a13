"""Decisions are of now: who gives way reads the clock again."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import reserver

ROOT = Path(reserver.__file__).parent
FILES = [path for path in sorted(ROOT.rglob("*.py")) if path.parent.name != "v1"]

Function = ast.FunctionDef | ast.AsyncFunctionDef
LOOPS = (ast.For, ast.While, ast.AsyncFor)


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function or of a part, without the nodes of nested functions."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, Function | ast.Lambda):
            yield from _within(child)


def _at(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]  # of code that is there


def _end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]  # as above


def _reads_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and "now" in _names(node) and "clock()" in ast.unparse(node)


def _names(node: ast.Assign) -> set[str]:
    return {each.id for to in node.targets for each in ast.walk(to) if isinstance(each, ast.Name)}


def stale(function: ast.AsyncFunctionDef) -> list[int]:
    """Return the lines of a function that read a `now` from before an `await`."""
    parts = list(_within(function))
    taken = sorted(_at(node) for node in parts if _reads_clock(node))
    names = [node for node in parts if isinstance(node, ast.Name) and node.id == "now"]
    read = sorted(_at(node) for node in names if isinstance(node.ctx, ast.Load))
    # An awaited call gets its arguments before it gives way.
    ways = [_end(node) for node in parts if isinstance(node, ast.Await)]
    loops = [(_at(node), _end(node)) for node in parts if isinstance(node, LOOPS)]
    found = set[int]()
    for use in read:
        since = max((at for at in taken if at < use), default=use)
        found.update(use[0] for way in ways if since < way < use)
        for begin, end in loops:
            if since < begin < use <= end and any(begin < way <= end for way in ways):
                found.add(use[0])
    return sorted(found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_decision_is_handed_a_moment_from_before_it_gave_way(path: Path) -> None:
    """Another moment has another name, such as `asked_at`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.AsyncFunctionDef):
            assert not stale(node), f"{path}: {node.name}: now is over"


def test_the_ledger_is_told_the_time_by_the_clock_alone() -> None:
    """Another clock may be ahead, and the ledger would not go back."""
    reported = set[str]()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            asks = node.func.attr in {"advance", "advancing", "is_due"}
            if asks and ast.unparse(node.func.value).endswith("ledger"):
                reported.add(ast.unparse(node.args[0]).removeprefix("self.").removeprefix("_"))
    assert reported == {"clock()", "now"}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("async def f(clock):\n now = clock()\n await g(now)\n", []),
        ("async def f(clock):\n now = clock()\n await g()\n h(now)\n", [4]),
        ("async def f(clock):\n now = clock()\n await g()\n now = clock()\n h(now)\n", []),
        ("async def f(clock):\n now = clock()\n for x in y:\n  h(now)\n  await g()\n", [4]),
        ("async def f(clock):\n for x in y:\n  now = clock()\n  h(now)\n  await g()\n", []),
        ("async def f(clock):\n now = clock()\n await g(lambda: h(now))\n", []),
    ],
)
def test_a_moment_is_over_once_others_have_had_their_turn(text: str, lines: list[int]) -> None:
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.AsyncFunctionDef)
    assert stale(function) == lines
