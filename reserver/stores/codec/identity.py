"""Computes the identity of a reservation from its entry."""

from __future__ import annotations

from dataclasses import replace

from reserver.cluster.byte_cache import same
from reserver.cluster.quantity import shared
from reserver.reservations.reservation import Reservation, digest


def identified(written: Reservation) -> Reservation:
    """Return a reservation with its digest, which depends on what it says, not on its layout.

    Nor on where it is written, `origin` included, so that a copy in another store is the same
    reservation; nor on where Reserver has placed it.

    Rewriting it (another layout, a ttl resolved to its moment) keeps its claims. Replacing it by
    another one, if only with a later expiry, does not.
    """
    return replace(
        written,
        digest=digest(written),
        node=same(written.node),
        owners=tuple(sorted(written.owners)),
        resources=shared(written.resources),
    )
