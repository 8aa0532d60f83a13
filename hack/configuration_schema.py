"""Generates the JSON schema of ReserverConfiguration from the declarations of its fields."""

from __future__ import annotations

from enum import EnumType
from typing import Any, get_args

from reserver.k8s.objects.move_windows import MOST_LABELS, MOST_WINDOWS
from reserver.settings.configuration import (
    API_VERSION,
    KIND,
    MOST_ITEMS,
    ConfigurationField,
    entries,
)
from reserver.settings.flags import staged
from reserver.stores.quota_codec import MOST_HARD

_RULE = {"enum": ["Allowed", "Forbidden"]}
_DURATION = {"type": "string", "pattern": r"^(0|([0-9]+(\.[0-9]+)?(h|ms|m|s))+)$"}
_QUOTA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "hard": {
            "type": "object",
            "maxProperties": MOST_HARD,
            "additionalProperties": {"type": ["string", "number"]},
        },
        "maxTTL": _DURATION,
        "nodeNames": _RULE,
        "firmHolds": _RULE,
    },
}
_LABELS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "matchLabels": {
            "type": "object",
            "maxProperties": MOST_LABELS,
            "additionalProperties": {"type": "string"},
        }
    },
}
_WINDOW = {
    "type": "object",
    "additionalProperties": False,
    "required": ["cron", "duration"],
    "properties": {
        "cron": {"type": "string"},
        "duration": _DURATION,
        "timeZone": {"type": "string"},
        "until": {"type": "string", "format": "date-time"},
        "namespaceSelector": _LABELS,
        "nodeSelector": _LABELS,
    },
}
_TABLES: dict[str, dict[str, Any]] = {
    "defaultQuota": _QUOTA,
    "moveWindows": {"type": "array", "maxItems": MOST_WINDOWS, "items": _WINDOW},
    "prices": {"type": "object", "additionalProperties": {"type": ["string", "number"]}},
}


def schema() -> dict[str, Any]:
    """Return the JSON schema."""
    properties: dict[str, Any] = {"apiVersion": {"const": API_VERSION}, "kind": {"const": KIND}}
    for entry in entries():
        group, dot, name = entry.path.rpartition(".")
        empty: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": {}}
        place = properties.setdefault(group, empty)["properties"] if dot else properties
        place[name] = {
            **_type(entry),
            "description": staged(entry.here, _described(entry)),
            "default": entry.show(entry.of.default),
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": KIND,
        "type": "object",
        "required": ["apiVersion", "kind"],
        "additionalProperties": False,
        "properties": properties,
    }


def description(entry: ConfigurationField) -> str:
    """Return the description of a field: the help of its flag, with names of fields for flags."""
    return _in_words_of_file(entry.of.flag.help.partition(" Default: ")[0])


def default_in_words(entry: ConfigurationField) -> str:
    """Return the default of a field in words if it is None; else an empty text."""
    text = entry.of.flag.help.partition(" Default: ")[2]
    return "" if entry.of.default is not None else _in_words_of_file(text).removesuffix(".")


def _described(entry: ConfigurationField) -> str:
    default = default_in_words(entry)
    return f"{description(entry)} Default: {default}." if default else description(entry)


def _in_words_of_file(text: str) -> str:
    for each in entries():
        text = text.replace(f"--no-{each.of.name.removeprefix('--')} ", f"{each.path}: false ")
        for end in " ,.":
            text = text.replace(f"{each.of.name}{end}", f"{each.path}{end}")
    return text


def _type(entry: ConfigurationField) -> dict[str, Any]:
    if entry.here.read is not None:
        return _TABLES[entry.path]
    if entry.of.is_repeated:
        return {"type": "array", "maxItems": MOST_ITEMS, "items": {"type": "string"}}
    if entry.of.kind is float:
        return _DURATION
    if entry.of.kind is int:
        return {"type": "integer", "minimum": 0}
    for kind in get_args(entry.of.kind) or (entry.of.kind,):
        if isinstance(kind, EnumType):
            is_optional = kind is not entry.of.kind
            return {"enum": [*map(str, kind), *((None,) if is_optional else ())]}
    kind = "boolean" if entry.of.kind is bool else "string"
    return {"type": [kind, "null"] if entry.of.default is None else kind}
