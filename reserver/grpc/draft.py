"""A reservation that is asked for, before it is known where it is written and placed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from reserver.grpc import convert
from reserver.reservations.enums import StoreKind
from reserver.reservations.placement import Parts
from reserver.reservations.reservation import Ref


@dataclass(frozen=True, slots=True)
class Draft:
    """A reservation that is asked for.

    Attributes:
        name: what it is to be called.
        path: where it stands in the request, as a prefix: empty, or with a dot at its end.
        document: what is to be written.
        labels: of its object.
    """

    name: str
    path: str
    document: dict[str, Any]
    labels: Mapping[str, str]

    @property
    def size(self) -> int:
        """How many bytes are to be written, without where it is placed."""
        return len(convert.encode_document(self.document).encode())

    def text(self, placed: Parts, ref: Ref) -> str:
        """Return what is to be written at a ref, as JSON, for a reservation as placed."""
        return convert.encode_document(convert.with_placements(self.document, placed, ref))

    def at(self, ref: Ref) -> Draft:
        """Return what is to be written at a ref.

        Another object of that name is another reservation. What it is known by has to be said
        before the API server gives it a UID: it may be claimed while it is being written.
        """
        if ref.kind is StoreKind.CONFIGMAP:
            return self
        origin = f"{ref._replace(key=self.name)}#{uuid4().hex}"
        return replace(self, document={**self.document, "origin": origin})
