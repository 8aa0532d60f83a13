"""Archives are the same whenever they are made."""

import io
import tarfile

from hack.artefacts.packing import packed

FILES = {"run": b"#!/bin/sh\n", "folder/text": b"text"}


def test_an_archive_has_the_files_and_nothing_of_the_moment() -> None:
    made = packed(FILES, executable="run")
    assert made == packed(FILES, executable="run")
    with tarfile.open(fileobj=io.BytesIO(made)) as tar:
        found = {each.name: (each.mode, each.mtime, each.uid, each.uname) for each in tar}
    assert found == {"run": (0o755, 0, 0, ""), "folder/text": (0o644, 0, 0, "")}
