"""ReservationQuota objects of reserver.io/v1alpha1, and the default quota as a setting."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from itertools import islice

import msgspec

from reserver.cluster import quantity
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.names import is_resource
from reserver.k8s.objects.objects import (
    CustomResource,
    Metadata,
    decode,
    decode_or_none,
    from_msgspec,
)
from reserver.k8s.objects.times import parse_duration
from reserver.reservations.quota import (
    HELD,
    HELD_ELSE,
    HELD_NODES,
    RESERVATIONS,
    Quota,
    show_amount,
)
from reserver.stores.object.codec import API_VERSION

KIND = "ReservationQuota"
COLLECTION = f"/apis/{API_VERSION}/reservationquotas"
"""The path of all ReservationQuotas of a cluster."""

StatusPatch = dict[str, dict[str, object]]

DEFAULT_NAME = "default"
_EXAMPLE = "reservations=10,held.cpu=8,held.*=0,maxTTL=24h"
NONE = "none"

MOST_HARD = 64
_MOST_USED = 64
"""Most resources limited only by `held.*` that the status shows."""


class FieldRule(StrEnum):
    """Whether reservations may set a field."""

    ALLOWED = "Allowed"
    FORBIDDEN = "Forbidden"


class QuotaSpec(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The spec of a ReservationQuota."""

    hard: dict[str, str | int | float] = {}
    max_ttl: str | None = msgspec.field(default=None, name="maxTTL")
    node_names: FieldRule = msgspec.field(default=FieldRule.ALLOWED, name="nodeNames")
    firm_holds: FieldRule = msgspec.field(default=FieldRule.ALLOWED, name="firmHolds")


class QuotaStatus(msgspec.Struct):
    """The status subresource, in the form of a ResourceQuota's."""

    hard: dict[str, str]
    used: dict[str, str]


class QuotaObject(CustomResource, frozen=True):
    """A ReservationQuota on the wire."""

    def stored_status(self) -> QuotaStatus | None:
        """Return the status; None if it is absent, or not written by Reserver."""
        return decode_or_none(QuotaStatus, self.status)


def status_path(namespace: str, name: str) -> str:
    """Return the path of the status of a ReservationQuota."""
    return f"/apis/{API_VERSION}/namespaces/{namespace}/reservationquotas/{name}/status"


def read_object(item: QuotaObject) -> Quota:
    """Return the quota of a ReservationQuota.

    Raises:
        InvalidInput: some field is not acceptable; the error carries its path.
    """
    with under("spec"):
        return _read(decode(QuotaSpec, item.spec or b"{}"), item.metadata.name)


def parse_default(text: str) -> Quota | None:
    """Return the quota that ``NAME=LIMIT,…`` describes; None for ``none``.

    Raises:
        InvalidInput: some part is not acceptable.
    """
    return None if text.strip() == NONE else _read(_spec(text), DEFAULT_NAME)


def _spec(text: str) -> QuotaSpec:
    hard: dict[str, str] = {}
    fields: dict[str, object] = {"hard": hard}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not (name and equals and value) or name in hard or name in fields:
            problem = f"{shorten(part)!r} is not NAME=LIMIT, or is given twice"
            raise InvalidInput("", problem, f"write e.g. {_EXAMPLE}, or {NONE}")
        is_hard = name == RESERVATIONS or name.startswith(HELD)
        (hard if is_hard else fields)[name] = value
    try:
        return msgspec.convert(fields, QuotaSpec, strict=True)
    except msgspec.ValidationError as exc:
        raise from_msgspec(exc, f"write e.g. {_EXAMPLE}") from exc


def read_default(written: object) -> str:
    """Return the text for `parse_default` from the spec of a ReservationQuota.

    Raises:
        InvalidInput: some field is not acceptable; the error carries its path.
    """
    try:
        spec = msgspec.convert(written, QuotaSpec, strict=True)
    except msgspec.ValidationError as exc:
        raise from_msgspec(exc, "write the spec of a ReservationQuota") from exc
    _read(spec, DEFAULT_NAME)
    fields: dict[str, object] = msgspec.to_builtins(spec)
    fields.pop("hard", None)
    return ",".join(f"{name}={limit}" for name, limit in {**spec.hard, **fields}.items()) or NONE


def show_default(text: str) -> dict[str, object]:
    """Return the spec of the text of a default quota, the reverse of `read_default`.

    Raises:
        InvalidInput: some part is not acceptable.
    """
    shown: dict[str, object] = {}
    if text.strip() != NONE:
        shown = msgspec.to_builtins(_spec(text))
    return shown


def show(quota: Quota, used: Mapping[str, int]) -> QuotaStatus:
    """Return the status of a quota: the limit and the usage of each counted resource."""
    hard = {counted: show_amount(counted, most) for counted, most in quota.hard.items()}
    counted = [name for name in quota.hard if name != HELD_ELSE]
    if HELD_ELSE in quota.hard:
        others = (name for name in sorted(used) if name not in quota.hard and quota.limit(name))
        counted += islice(others, _MOST_USED)
    return QuotaStatus(hard, {name: show_amount(name, used.get(name, 0)) for name in counted})


def patch(metadata: Metadata, before: QuotaStatus | None, after: QuotaStatus) -> StatusPatch:
    """Return the merge patch for a status; its resourceVersion refuses a concurrent change."""
    gone_hard = dict.fromkeys(before.hard if before else ())
    gone_used = dict.fromkeys(before.used if before else ())
    return {
        "metadata": {"resourceVersion": metadata.resource_version},
        "status": {"hard": {**gone_hard, **after.hard}, "used": {**gone_used, **after.used}},
    }


def _read(spec: QuotaSpec, name: str) -> Quota:
    if len(spec.hard) > MOST_HARD:
        raise InvalidInput("hard", f"{len(spec.hard)} limits are too many", f"write {MOST_HARD}")
    return Quota(
        name=name,
        hard={counted: _limit(counted, str(text)) for counted, text in spec.hard.items()},
        max_ttl=None if spec.max_ttl is None else _max_ttl(spec.max_ttl),
        allows_node_names=spec.node_names is FieldRule.ALLOWED,
        allows_firm_holds=spec.firm_holds is FieldRule.ALLOWED,
    )


def _limit(counted: str, text: str) -> int:
    path = f"hard.{shorten(counted)}"
    resource = counted.removeprefix(HELD)
    is_held = counted.startswith(HELD) and (
        counted in {HELD_ELSE, HELD_NODES} or is_resource(resource)
    )
    if not is_held and counted != RESERVATIONS:
        remedy = f"write {RESERVATIONS}, {HELD}RESOURCE such as {HELD}cpu, or {HELD_ELSE}"
        raise InvalidInput(path, "is not counted by quotas", remedy)
    with under(path):
        amount = quantity.amount(resource, text)
    if amount < 0:
        raise InvalidInput(path, f"{shorten(text)} is negative", "write 0 or more")
    return amount


def _max_ttl(text: str) -> float:
    with under("maxTTL"):
        seconds = parse_duration(text)
    if not seconds:
        raise InvalidInput("maxTTL", "is zero", "write how long a reservation may live, e.g. 24h")
    return seconds
