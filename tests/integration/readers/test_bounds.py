"""At its bound each input is read in a fraction of a tenth of a second; longer ones are refused."""

from __future__ import annotations

from functools import partial

import pytest

from reserver.errors import InvalidInput
from reserver.k8s.objects import nodes, storage
from reserver.k8s.objects.objects import (
    decode,
)
from reserver.k8s.objects.pods import PodObject
from reserver.webhook import review
from tests.cpu import MOST_S, least_cpu_s
from tests.integration.readers.readers import FILLER, READERS


@pytest.mark.parametrize("name", READERS)
def test_at_its_bound_nothing_takes_long_to_read(name: str) -> None:
    reader, slow = READERS[name], {}
    for path in FILLER.spots(reader.kind):
        for is_full in (False, True) if FILLER.has_entries(path[-1][1]) else (False,):
            filled = partial(FILLER.document, path, reader.most, is_full=is_full)
            if (took := least_cpu_s(filled, reader.read)) >= MOST_S:
                slow[".".join(part for part, _ in path[1:]), is_full] = round(took, 3)
    assert not slow


def test_what_is_longer_than_its_bound_is_not_read() -> None:
    kinds = {reader.kind for reader in READERS.values() if getattr(reader.kind, "MOST_BYTES", 0)}
    assert {PodObject, nodes.NodeObject, storage.ClaimObject, review.CreatedPod} <= kinds
    for kind in kinds:
        with pytest.raises(InvalidInput, match="too many to be read"):
            decode(kind, b" " * (kind.MOST_BYTES - 1) + b"{}")
        assert decode(kind, b" " * (kind.MOST_BYTES - 2) + b"{}") is not None
