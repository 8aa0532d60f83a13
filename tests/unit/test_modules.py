"""Rules for every module of the package, without generated code."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "reserver"
MOST_LINES = 300


def modules() -> Iterator[tuple[str, str]]:
    """Yield each module's path within the package, and its text."""
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "v1":
            yield str(path.relative_to(PACKAGE)), path.read_text()


def test_no_class_name_stands_twice() -> None:
    places = defaultdict(list)
    for path, text in modules():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert not {name: files for name, files in places.items() if len(files) > 1}


def test_a_module_is_read_in_one_sitting() -> None:
    sizes = {path: text.count("\n") for path, text in modules()}
    assert not {path: lines for path, lines in sizes.items() if lines > MOST_LINES}
