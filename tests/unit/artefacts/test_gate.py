"""The obstacles to a release."""

import pytest

from hack import dist
from hack.artefacts.gate import notes, problems

IMAGE = "registry.example/reserver"
LOG = """# Changelog

## [Unreleased]

## [1.2.0] - 2026-01-02

### Added

- A thing.

## [1.1.0]

- No date.

## [1.0.0] - 2025-01-01

## [0.9.0] - some-day

- A date that is none.
"""


def test_a_clean_tree_with_a_section_is_released() -> None:
    assert not [*problems("1.2.0", IMAGE, LOG, "", ["v1.2.0", "nightly"])]


@pytest.mark.parametrize(
    ("version", "status", "tags", "problem"),
    [
        ("1.2.0", " M reserver/app.py\n", (), "the work tree differs"),
        ("1.2.0", "?? left-over\n", (), "left-over"),
        ("1.3.0", "", (), r"no section \[1.3.0\]"),
        ("1.2", "", (), r"no section \[1.2\]"),
        ("1.1.0", "", (), "has no date"),
        ("0.9.0", "", (), "has no date"),
        ("1.0.0", "", (), "is empty"),
        ("1.2.0", "", ["v1.1.0"], "the tag v1.1.0"),
    ],
)
def test_anything_else_is_refused(version: str, status: str, tags: list[str], problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        assert not [*problems(version, IMAGE, LOG, status, tags)]


@pytest.mark.parametrize("image", ["reserver", "ghcr.io/a/b-c/reserver", "localhost:5000/x_y"])
def test_an_image_is_named_with_or_without_a_registry(image: str) -> None:
    assert not [*problems("1.2.0", image, LOG, "", ())]


@pytest.mark.parametrize(
    "image", ["", "a b", "r.example/reserver:1.0", "UPPER", "x@sha256:1", "a/"]
)
def test_anything_but_a_name_is_refused(image: str) -> None:
    (problem,) = problems("1.2.0", image, LOG, "", ())
    assert "without a tag" in problem


def test_the_notes_are_the_section() -> None:
    assert notes("1.2.0", LOG) == "### Added\n\n- A thing."
    assert notes("3.0.0", LOG) == ""


def test_this_version_has_its_section() -> None:
    changelog = (dist.ROOT / "CHANGELOG.md").read_text()
    assert not [*problems(dist.version(), IMAGE, changelog, "", ())]
    written = notes(dist.version(), changelog)
    headings = [line for line in written.splitlines() if line.startswith("### ")]
    assert headings[0] == "### Action required"
    assert len(written.split()) < 1800
