"""Archives that have the same bytes whenever they are made of the same files."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping

EXECUTABLE, PLAIN = 0o755, 0o644


def packed(files: Mapping[str, bytes], executable: str = "") -> bytes:
    """Return a .tar.gz of files by their paths, without times and owners; one may be executable."""
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), EXECUTABLE if name == executable else PLAIN
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()
