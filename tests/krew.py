"""Does with a manifest and its archive what krew does, and checks krew's conditions."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import yaml


def install(folder: Path, store: Path, system: str) -> Path:
    """Do what krew does on a system (its internal/installation); return what kubectl finds."""
    manifest = yaml.safe_load((folder / "krew-reserver.yaml").read_text())
    (platform,) = manifest["spec"]["platforms"]
    assert platform.keys() == {"uri", "sha256", "bin", "selector", "files"}
    (wanted,) = platform["selector"].pop("matchExpressions")
    assert (wanted["key"], wanted["operator"], platform["selector"]) == ("os", "In", {})
    assert system in wanted["values"]
    archive = folder / platform["uri"]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    assert platform["files"] == [{"from": "*", "to": "."}]
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Since Python 3.11.4.
        tar.extractall(store)
    return store / str(platform["bin"])
