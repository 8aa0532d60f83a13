"""One term for one thing: docs/glossary.md is true, and what it rules out stands nowhere."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs/glossary.md"
GENERATED = ROOT / "reserver/v1"
HISTORY = ROOT / "docs/adr"


def ruled_out() -> list[str]:
    """Return the first column of the glossary's last table."""
    table = GLOSSARY.read_text().partition("| not | but |")[2]
    rows = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
    return [words for row in rows for words in row.split(", ")]


def sources(*folders: str) -> Iterator[Path]:
    """Yield the files that people write, but for this one, the glossary and old decisions."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            written = path.suffix in {".py", ".md", ".proto", ".yaml"} and path != GLOSSARY
            if written and not {GENERATED, HISTORY} & set(path.parents):
                yield path


@pytest.mark.parametrize("words", ruled_out())
def test_words_that_are_ruled_out_stand_nowhere(words: str) -> None:
    meant = re.compile(rf"\b{words}\b".replace(" ", r"\s+"), re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}: {hit[0]}"
        for path in sources("reserver", "hack", "docs", "proto", "scheduler-config")
        for hit in meant.finditer(path.read_text())
    ]
    assert found == []


HOMES = {
    "account": ("reserver/reservations",),
    "shortage": ("reserver/client", "reserver/cli", "reserver/server/rpc"),
    "shortages": ("reserver/client", "reserver/cli", "reserver/server/rpc"),
}
"""The folders that know a name: it means one thing there, and nothing elsewhere."""


def names(path: Path) -> Iterator[str]:
    """Yield the names that a module gives to what it defines."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name):
                yield name
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name.lower()


@pytest.mark.parametrize("name", HOMES)
def test_a_term_names_one_thing(name: str) -> None:
    knowing = {
        str(path.relative_to(ROOT).parent)
        for path in sources("reserver")
        if path.suffix == ".py" and name in names(path)
    }
    assert knowing
    assert knowing <= set(HOMES[name])


def test_where_something_is_written_is_a_ref_and_no_place() -> None:
    wrong = re.compile(r"\bplaces?: (Ref|list\[Ref|Mapping\[Ref|dict\[Ref)")
    assert [
        str(path) for path in sources("reserver", "hack") if wrong.search(path.read_text())
    ] == []


def test_each_term_of_the_glossary_is_in_use() -> None:
    """A term that nobody uses explains nothing."""
    terms = re.findall(
        r"^\| (?:to )?((?:\*\*[^*]+\*\*(?:, )?)+)", GLOSSARY.read_text(), re.MULTILINE
    )
    every = "\n".join(path.read_text().lower() for path in sources("reserver", "docs"))
    unused = [
        term
        for row in terms
        for term in re.findall(r"[a-z]+", row.lower())
        if not re.search(rf"\b{term}", every)
    ]
    assert unused == []
