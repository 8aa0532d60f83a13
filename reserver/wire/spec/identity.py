"""What tells a reservation from one that stood, or will stand, at the same place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reserver.cluster.pod import PodName
from reserver.reservations import identity
from reserver.reservations.owner import OwnerRule
from reserver.reservations.placement import ANYWHERE, Parts, Placement
from reserver.reservations.reservation import Policy, Ref, Reservation


def identified(  # noqa: PLR0913 - the fields of a reservation
    *,
    ref: Ref,
    node: str,
    owners: frozenset[PodName],
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
    """Return a reservation whose digest follows from what it says, not from how it is written.

    Nor does it follow from where it stands, `origin` included: what is copied from one store to
    another is the same reservation there; nor from where Reserver has placed it.

    So rewriting the same reservation (another layout, a ttl resolved to its moment) keeps the
    claims on it, and writing another one in its place, if only with a later expiry, does not
    inherit them.
    """
    reservation = Reservation(
        ref=ref,
        digest="",
        node=node,
        owners=owners,
        resources=resources,
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
