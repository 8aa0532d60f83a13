"""The obstacles to a release, as a plain function of the state of the checkout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_SECTION = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\S+))?$", re.MULTILINE)
_IMAGE = re.compile(r"(?:[a-z0-9.-]+(?::\d+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def problems(
    version: str, image: str, changelog: str, status: str, tags: Iterable[str]
) -> Iterator[str]:
    """Yield each reason to refuse.

    Args:
        version: to be released.
        image: the name of the image.
        changelog: the text of CHANGELOG.md.
        status: the output of `git status --porcelain`.
        tags: of the commit.
    """
    if not _IMAGE.fullmatch(image):
        yield f"{image!r} names no image; write e.g. registry.example/reserver, without a tag"
    if status:
        yield f"the work tree differs from its commit; commit or remove:\n{status.rstrip()}"
    sections = {each["version"]: each for each in _SECTION.finditer(changelog)}
    if version not in sections:
        yield f"CHANGELOG.md has no section [{version}]"
    elif not _DATE.fullmatch(sections[version]["date"] or ""):
        yield f"the section [{version}] of CHANGELOG.md has no date: ## [{version}] - YYYY-MM-DD"
    elif not notes(version, changelog):
        yield f"the section [{version}] of CHANGELOG.md is empty"
    others = [tag for tag in tags if tag.startswith("v") and tag != f"v{version}"]
    if others:
        yield f"the commit has the tag {', '.join(others)}, and pyproject.toml has {version}"


def notes(version: str, changelog: str) -> str:
    """Return the text of a version's section, or nothing where there is none."""
    _, _, after = changelog.partition(f"\n## [{version}]")
    text, _, _ = after.partition("\n## [")
    return text.partition("\n")[2].strip()
