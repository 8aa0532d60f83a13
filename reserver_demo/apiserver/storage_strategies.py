"""The strategies of claims, volumes and storage classes: pkg/registry/core and storage."""

from __future__ import annotations

from collections.abc import Iterator

from reserver_demo.apiserver.status import Cause, Json, forbidden_value
from reserver_demo.apiserver.strategy import Strategy, keep


def _keep_status(new: Json, old: Json) -> None:
    keep("status", new, old)


def _keep_spec(new: Json, old: Json) -> None:
    keep("spec", new, old)


def _prepare_claim(claim: Json) -> None:
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    claim["status"] = {"phase": "Pending"}


CLAIM = Strategy(
    prepare_create=_prepare_claim,
    prepare_update=_keep_status,
    prepare_status=_keep_spec,
    returns_deleted=True,
)


def _prepare_volume(volume: Json) -> None:
    spec = volume.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    volume["status"] = {"phase": "Pending"}


VOLUME = Strategy(
    prepare_create=_prepare_volume,
    prepare_update=_keep_status,
    prepare_status=_keep_spec,
    returns_deleted=True,
)


def _prepare_storage_class(storage_class: Json) -> None:
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")


def _check_storage_class_update(new: Json, old: Json) -> Iterator[Cause]:
    for field in ("provisioner", "parameters", "reclaimPolicy"):
        if new.get(field) != old.get(field):
            yield forbidden_value(field, f"updates to {field} are forbidden.")


STORAGE_CLASS = Strategy(
    prepare_create=_prepare_storage_class,
    check_update=_check_storage_class_update,
    returns_deleted=True,
)
