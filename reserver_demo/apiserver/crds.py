"""The CRDs of scheduler-config that the embedded API server serves, including PodMoves."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import yaml

from reserver_demo.apiserver.status import Json

_IN_A_WHEEL = "manifests"
_IN_A_CHECKOUT = Path(__file__).parents[2] / "scheduler-config"
_FOLDERS = ("core", "components/moves", "components/maintenance")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def crds() -> Iterator[Json]:
    """Yield the manifests of all CRDs, in the order of their folders and files."""
    shipped: Traversable = files(__package__).joinpath(_IN_A_WHEEL)
    home = shipped if shipped.is_dir() else _IN_A_CHECKOUT
    for folder in _FOLDERS:
        for file in sorted(home.joinpath(folder).iterdir(), key=lambda file: file.name):
            if file.name.startswith("crd"):
                yield from _crds_in(file)


def _crds_in(file: Traversable) -> Iterator[Json]:
    for document in yaml.load_all(file.read_bytes(), _LOADER):
        if document["kind"] == "CustomResourceDefinition":
            yield document
