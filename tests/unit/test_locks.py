"""Whatever is fetched is checked: images by digest, packages by hash."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted(ROOT.glob("requirements*.lock"))


def test_every_base_image_is_named_by_digest() -> None:
    images = re.findall(
        r"^FROM (?:--platform=\S+ )?(\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE
    )
    assert images
    for image in images:
        assert re.fullmatch(r"[a-z.:/0-9-]+@sha256:[0-9a-f]{64}", image), image
    assert len(set(images)) == 1


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_has_hashes(lock: Path) -> None:
    text = lock.read_text().replace("\\\n", "")
    for line in text.splitlines():
        assert re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line


@pytest.mark.parametrize("file", ["Makefile", "Dockerfile"])
def test_nothing_is_installed_that_is_in_no_lock(file: str) -> None:
    text = (ROOT / file).read_text().replace("\\\n", "")
    installs = re.findall(r"pip (?:install|wheel)\b[^&\n]*", text)
    assert installs
    for command in installs:
        ours = "--no-deps" in command and (
            "--no-build-isolation" in command or "--no-index" in command
        )
        assert ours or re.search(r"--require-hashes -r requirements[a-z-]*\.lock", command), command
