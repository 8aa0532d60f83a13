"""Rules for every module but generated code; unique class names are a rule of the package alone."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("reserver", "reserver_demo", "hack", pytest.param("tests", marks=pytest.mark.long))
MOST_LINES = 300
MOST_FUNCTION_LINES = 40


def modules(folder: str) -> Iterator[tuple[str, str]]:
    """Yield each module's path within the repository, and its text."""
    for path in (ROOT / folder).rglob("*.py"):
        if path.parent.name != "v1":
            yield str(path.relative_to(ROOT)), path.read_text()


def test_no_class_name_stands_twice() -> None:
    places = defaultdict(list)
    for path, text in modules("reserver"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert not {name: files for name, files in places.items() if len(files) > 1}


def test_no_block_takes_exceptions_out_of_a_group() -> None:
    """Python before 3.11.4 wraps what an `except*` block raises: a refused watch ended Reserver."""
    trees = {path: ast.walk(ast.parse(text)) for path, text in modules("reserver")}
    assert not [
        path for path, tree in trees.items() if any(isinstance(n, ast.TryStar) for n in tree)
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_module_is_read_in_one_sitting(folder: str) -> None:
    sizes = {path: text.count("\n") for path, text in modules(folder)}
    assert not {path: lines for path, lines in sizes.items() if lines > MOST_LINES}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_function_is_short_without_its_docstring(folder: str) -> None:
    sizes = {
        f"{path}: {node.name}": _lines(node)
        for path, text in modules(folder)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert not {name: lines for name, lines in sizes.items() if lines > MOST_FUNCTION_LINES}


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    is_docstring = ast.get_docstring(node) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0
    return (node.end_lineno or 0) - node.lineno + 1 - docstring
