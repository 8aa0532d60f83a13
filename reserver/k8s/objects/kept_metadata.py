"""What is kept of an object's metadata, as long as the object exists.

Its author chooses labels, annotations and owners, and may write more than a megabyte of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from reserver.k8s.objects.limits import POD, TENANT

OWN_DOMAIN = "reserver.io/"
"""The prefix of the labels that only Reserver writes, and of all annotations that it reads."""


def few_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the first labels, as many as are read of a pod."""
    return _first(labels.items(), POD.part_bytes)


def own_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the first of Reserver's annotations; the longest is a placement."""
    own = (each for each in annotations.items() if each[0].startswith(OWN_DOMAIN))
    return _first(own, TENANT.spec_bytes)


def _first(texts: Iterable[tuple[str, str]], most: int) -> dict[str, str]:
    kept: dict[str, str] = {}
    for name, text in islice(texts, POD.labels):
        most -= len(name) + len(text)
        if most < 0:
            break
        kept[name] = text
    return kept
