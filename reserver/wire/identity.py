"""What tells a reservation from one that stood, or will stand, at the same place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from reserver.cluster.pod import PodName
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
) -> Reservation:
    """Return a reservation whose digest follows from what it says, not from how it is written.

    Nor does it follow from where it stands, `origin` included: what is copied from one store to
    another is the same reservation there; nor from where Reserver has placed it.

    So rewriting the same reservation (another layout, a ttl resolved to its moment) keeps the
    claims on it, and writing another one in its place, if only with a later expiry, does not
    inherit them.
    """
    said: list[object] = [
        node,
        sorted(owners),
        sorted(resources.items()),
        slots,
        starts_at,
        expires_at,
        policy,
    ]
    # Without these the digest is what it was before there were these.
    if yields_above is not None:
        said.append(yields_above)
    if rules or reusable:
        said.append([sorted(map(_said, rules)), reusable])
    if placement.text:
        said.append({"placement": placement.text})
    digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
    return Reservation(
        ref=ref,
        digest=digest,
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
    )


def _said(rule: OwnerRule) -> list[object]:
    terms = [(t.key, t.operator, sorted(t.values)) for t in rule.selector.requirements]
    return [rule.namespace, rule.pod, *rule.controller, sorted(terms)]
