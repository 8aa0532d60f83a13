"""Computes the identity of a reservation from its entry."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from reserver.cluster.pod import PodName
from reserver.cluster.remembered import same
from reserver.reservations import identity
from reserver.reservations.amounts import shared
from reserver.reservations.owner import OwnerRule
from reserver.reservations.placement import ANYWHERE, Parts, Placement
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.terms import Policy


def identified(  # noqa: PLR0913 - the fields of a reservation
    *,
    ref: Ref,
    node: str,
    owners: Collection[PodName],
    resources: Mapping[str, int],
    slots: int = 1,
    starts_at: float | None = None,
    expires_at: float | None = None,
    policy: Policy = Policy.PREFER,
    yields_above: int | None = None,
    rules: tuple[OwnerRule, ...] = (),
    reusable: bool = False,
    placement: Placement = ANYWHERE,
    placed: Parts = (),
    origin: str = "",
    drift: int = 0,
) -> Reservation:
    """Return a reservation whose digest depends on what it says, not on its layout.

    Nor on where it is written, `origin` included, so that a copy in another store is the same
    reservation; nor on where Reserver has placed it.

    Rewriting it (another layout, a ttl resolved to its moment) keeps its claims. Replacing it by
    another one, if only with a later expiry, does not.
    """
    reservation = Reservation(
        ref=ref,
        digest="",
        node=same(node),
        owners=tuple(sorted(owners)),
        resources=shared(resources),
        slots=slots,
        starts_at=starts_at,
        expires_at=expires_at,
        policy=policy,
        yields_above=yields_above,
        rules=rules,
        reusable=reusable,
        placement=placement,
        placed=placed,
        origin=origin,
        drift=drift,
    )
    return replace(reservation, digest=identity.digest(reservation))
