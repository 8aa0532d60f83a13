"""Field managers for server-side apply (apimachinery/pkg/util/managedfields).

Managers are recorded from the first apply of an object on. Fields from before belong to
`before-first-apply`, as in Kubernetes for objects without managers. The status has no managers.
"""

from __future__ import annotations

from http import HTTPStatus

from reserver_demo.apiserver.fieldsets import (
    Path,
    fields_of,
    found,
    from_v1,
    is_item,
    merged,
    shown,
    to_v1,
    without,
)
from reserver_demo.apiserver.schema import Schema
from reserver_demo.apiserver.status import Json, StatusError

_APPLY, _UPDATE = "Apply", "Update"
_BEFORE = "before-first-apply"
_UNMANAGED = ("apiVersion", "kind", "status")
_META = ("labels", "annotations", "finalizers", "ownerReferences")
_Managers = dict[tuple[str, str], frozenset[Path]]
"""Fields by name and operation of their manager."""


def applied(
    live: Json | None, config: Json, schema: Schema, manager: str, *, force: bool, now: str
) -> Json:
    """Return an object with an applied configuration and updated managers.

    Args:
        live: the object; None if absent.
        config: all fields that the manager applies.
        schema: the object's type.
        manager: the manager's name.
        force: take over fields of other managers.
        now: the time, RFC 3339.

    Raises:
        StatusError: 409 for conflicts with fields of other managers.
    """
    own = (manager, _APPLY)
    managers = _read(live)
    if live is not None and not managers:
        managers[_BEFORE, _UPDATE] = _managed(live, schema)
    wanted = _managed(config, schema)
    others = {key: fields for key, fields in managers.items() if key != own}
    contested = {
        key: {
            path
            for path in fields & wanted
            if not is_item(path) and found(live, path, schema) != found(config, path, schema)
        }
        for key, fields in others.items()
    }
    if any(contested.values()) and not force:
        raise _contested(contested, _recorded(live))
    result = merged(live or {}, config, schema)
    others = {key: fields - contested[key] for key, fields in others.items()}
    given_up = managers.get(own, frozenset()) - wanted - frozenset().union(*others.values())
    for path in sorted(given_up):
        result = without(result, path, schema)
    entries = _entries({**others, own: wanted}, live, config["apiVersion"], now)
    return {**result, "metadata": {**result["metadata"], "managedFields": entries}}


def updated_managers(old: Json, new: Json, schema: Schema, manager: str, now: str) -> list[Json]:
    """Return the managers after an update: the updater manages the fields that it changed."""
    managers = _read(old)
    if not managers:
        return []
    there = _managed(new, schema)
    changed = {
        path
        for path in there
        if not is_item(path) and found(old, path, schema) != found(new, path, schema)
    }
    managers = {key: (fields & there) - changed for key, fields in managers.items()}
    own = (manager, _UPDATE)
    managers[own] = managers.get(own, frozenset()) | changed
    return _entries(managers, old, old["apiVersion"], now)


def _managed(content: Json, schema: Schema) -> frozenset[Path]:
    """Return the fields of an object that can have managers."""
    kept = {key: value for key, value in content.items() if key not in _UNMANAGED}
    metadata = content.get("metadata", {})
    kept["metadata"] = {key: metadata[key] for key in _META if metadata.get(key)}
    if not kept["metadata"]:
        del kept["metadata"]
    return frozenset(fields_of(kept, schema)) - {()}


def _read(content: Json | None) -> _Managers:
    recorded = _recorded(content).items()
    return {key: frozenset(from_v1(entry["fieldsV1"])) for key, entry in recorded}


def _recorded(content: Json | None) -> dict[tuple[str, str], Json]:
    entries = (content or {}).get("metadata", {}).get("managedFields", ())
    return {(entry["manager"], entry["operation"]): entry for entry in entries}


def _entries(managers: _Managers, before: Json | None, api_version: str, now: str) -> list[Json]:
    """Return the managers as managedFields; unchanged entries keep their time."""
    old = _recorded(before)
    entries = []
    for key, fields in managers.items():
        tree = to_v1(fields)
        same = key in old and old[key]["fieldsV1"] == tree
        if fields:
            entries.append(old[key] if same else _entry(key, tree, api_version, now))
    return entries


def _entry(key: tuple[str, str], tree: Json, api_version: str, now: str) -> Json:
    manager, operation = key
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": tree,
    }


def _contested(
    contested: dict[tuple[str, str], set[Path]], recorded: dict[tuple[str, str], Json]
) -> StatusError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_named(key, recorded)}",
            "field": shown(path),
        }
        for key, paths in contested.items()
        for path in sorted(paths)
    ]
    count = f"{len(causes)} conflict{'s' if len(causes) > 1 else ''}"
    listed = ", ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    message = f"Apply failed with {count}: {listed}"
    return StatusError(HTTPStatus.CONFLICT, "Conflict", message, {"causes": causes})


def _named(key: tuple[str, str], recorded: dict[tuple[str, str], Json]) -> str:
    """Return a manager for a conflict message; for updates with its apiVersion (`printManager`)."""
    manager, operation = key
    if operation == _APPLY or key not in recorded:
        return f'"{manager}"'
    return f'"{manager}" using {recorded[key]["apiVersion"]}'
