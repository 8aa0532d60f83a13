"""The name of a class stands once in the package, generated code aside."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "reserver"


def test_no_class_name_stands_twice() -> None:
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "v1":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(path.relative_to(PACKAGE)))
    assert not {name: files for name, files in places.items() if len(files) > 1}
