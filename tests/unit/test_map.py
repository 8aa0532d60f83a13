"""docs/architecture.md is true to the folders."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ROOT / "reserver"
MAP = (ROOT / "docs/architecture.md").read_text()
ROWS = dict(re.findall(r"^\| `([\w/]+)/` \|[^|]*\|([^|]*)\|$", MAP, re.MULTILINE))


def test_every_folder_of_the_code_is_on_the_map() -> None:
    folders = {path.parent.relative_to(CODE).as_posix() for path in CODE.rglob("*.py")}
    assert set(ROWS) == folders - {"."}


def test_every_file_that_a_folder_lists_is_in_it() -> None:
    named = {f"{folder}/{name}" for folder, files in ROWS.items() for name in _quoted(files)}
    assert len(named) > len(ROWS)
    missing = {name for name in named if not (CODE / f"{name}.py").is_file()}
    assert not missing


def test_every_path_on_the_map_leads_to_a_file_or_folder() -> None:
    paths = {name for name in _quoted(MAP) if "/" in name or name.endswith(".py")}
    assert len(paths) > len(ROWS)
    missing = {path for path in paths if not ((CODE / path).exists() or (ROOT / path).exists())}
    assert not missing


def _quoted(text: str) -> list[str]:
    """Return what stands between backticks and could be a file or folder."""
    return re.findall(r"`(\w[\w./-]*)`", text)
