"""Programs in Go are built anew when what they are made of changes, and only then."""

from pathlib import Path

import pytest

from hack.go_tool import GoTool


@pytest.mark.parametrize("changed", ["go.mod", "go.sum", "main.go"])
def test_another_pin_or_another_source_is_another_binary(tmp_path: Path, changed: str) -> None:
    for name in ("go.mod", "go.sum", "main.go"):
        (tmp_path / name).write_text(name)
    tool = GoTool("tool", ".", tmp_path)
    before = tool.binary
    assert tool.binary == before
    (tmp_path / changed).write_text("something else")
    assert tool.binary != before


def test_what_lies_beside_it_does_not_matter(tmp_path: Path) -> None:
    for name in ("go.mod", "go.sum"):
        (tmp_path / name).write_text(name)
    tool = GoTool("tool", ".", tmp_path)
    before = tool.binary
    (tmp_path / "README.md").write_text("words")
    assert tool.binary == before
