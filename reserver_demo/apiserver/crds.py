"""The CRDs of scheduler-config/core, as the embedded API server serves them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import yaml

from reserver_demo.apiserver.status import Json

_IN_A_WHEEL = "manifests"
_IN_A_CHECKOUT = Path(__file__).parents[2] / "scheduler-config/core"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def crds() -> Iterator[Json]:
    """Yield the manifests of all CRDs, by the name of their file."""
    shipped: Traversable = files(__package__).joinpath(_IN_A_WHEEL)
    folder = shipped if shipped.is_dir() else _IN_A_CHECKOUT
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            for document in yaml.load_all(file.read_bytes(), _LOADER):
                if document["kind"] == "CustomResourceDefinition":
                    yield document
