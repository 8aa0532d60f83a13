"""How objects of CRDs are written: apiextensions-apiserver/pkg/registry/customresource.

The schema and the rules of the CRD are the real API server's business; only its defaults are here.
"""

from __future__ import annotations

from reserver.sim.apiserver.status import Json
from reserver.sim.apiserver.strategy import Strategy, keep


def _fill_in(spec: Json) -> None:
    spec.setdefault("slots", 1)
    spec.setdefault("policy", "Prefer")


def _prepare(custom: Json) -> None:
    custom.pop("status", None)
    custom["metadata"]["generation"] = 1


def _prepare_reservation(reservation: Json) -> None:
    _prepare(reservation)
    _fill_in(reservation.setdefault("spec", {}))


def _prepare_update(new: Json, old: Json) -> None:
    keep("status", new, old)
    if new["spec"] != old["spec"]:
        new["metadata"]["generation"] = old["metadata"]["generation"] + 1


def _prepare_reservation_update(new: Json, old: Json) -> None:
    _fill_in(new.setdefault("spec", {}))
    _prepare_update(new, old)


def _prepare_status(new: Json, old: Json) -> None:
    keep("spec", new, old)
    new["metadata"] = dict(old["metadata"])


CUSTOM = Strategy(
    prepare_create=_prepare,
    prepare_update=_prepare_update,
    prepare_status=_prepare_status,
)
"""How objects of a CRD without defaults are written."""

RESERVATION = Strategy(
    prepare_create=_prepare_reservation,
    prepare_update=_prepare_reservation_update,
    prepare_status=_prepare_status,
)
