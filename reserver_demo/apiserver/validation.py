"""The rules for names, labels and annotations of every object.

apimachinery/pkg/util/validation and pkg/api/validation/objectmeta.go, with the same messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from reserver_demo.apiserver.status import (
    Cause,
    Json,
    forbidden_value,
    invalid_value,
    required,
    too_long,
)

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_MAX_LABEL = 63
_MAX_SUBDOMAIN = 253
_MAX_ANNOTATIONS = 256 * 1024

Rule = Callable[[str], str]
"""Returns the problem of a name; empty if valid."""


def dns_label(name: str) -> str:
    """Return the problem of a name as a DNS-1123 label; empty if valid."""
    if len(name) > _MAX_LABEL:
        return "must be no more than 63 characters"
    if re.fullmatch(_LABEL, name):
        return ""
    return (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
        f"regex used for validation is '{_LABEL}')"
    )


def dns_subdomain(name: str) -> str:
    """Return the problem of a name as a DNS-1123 subdomain; empty if valid."""
    if len(name) > _MAX_SUBDOMAIN:
        return "must be no more than 253 characters"
    if re.fullmatch(_SUBDOMAIN, name):
        return ""
    return (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
        "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
        f"regex used for validation is '{_SUBDOMAIN}')"
    )


def metadata_causes(metadata: Json, rule: Rule) -> Iterator[Cause]:
    """Yield the problems of an object's metadata."""
    name = metadata.get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif problem := rule(name):
        yield invalid_value("metadata.name", name, problem)
    yield from _label_causes(metadata.get("labels", {}))
    yield from _annotation_causes(metadata.get("annotations", {}))
    for finalizer in metadata.get("finalizers", ()):
        if problem := qualified_name(finalizer):
            yield invalid_value("metadata.finalizers", finalizer, problem)


def _label_causes(labels: dict[str, str]) -> Iterator[Cause]:
    for key, value in labels.items():
        if problem := qualified_name(key):
            yield invalid_value("metadata.labels", key, problem)
        if problem := _label_value(value):
            yield invalid_value("metadata.labels", value, problem)


def _annotation_causes(annotations: dict[str, str]) -> Iterator[Cause]:
    for key in annotations:
        if problem := qualified_name(key.lower()):
            yield invalid_value("metadata.annotations", key, problem)
    if sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) > _MAX_ANNOTATIONS:
        yield too_long("metadata.annotations", f"may not be more than {_MAX_ANNOTATIONS} bytes")


def qualified_name(key: str) -> str:
    """Return the problem of a key as a qualified name (`prefix/name`); empty if valid."""
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or dns_subdomain(prefix)):
        return f"prefix part {dns_subdomain(prefix) or 'must be non-empty'}"
    if not name:
        return "name part must be non-empty"
    if len(name) > _MAX_LABEL:
        return "name part must be no more than 63 characters"
    if not _NAME_PART.fullmatch(name):
        return (
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start "
            "and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
            "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        )
    return ""


def _label_value(value: str) -> str:
    if len(value) > _MAX_LABEL:
        return "must be no more than 63 characters"
    if not _LABEL_VALUE.fullmatch(value):
        return (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', "
            "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  "
            "or 'my_value',  or '12345', regex used for validation is "
            "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        )
    return ""


def immutable_metadata_causes(new: Json, old: Json) -> Iterator[Cause]:
    """Yield the immutable fields of the metadata that an update changes."""
    for name in ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if new.get(name) != old.get(name):
            yield invalid_value(f"metadata.{name}", str(new.get(name)), "field is immutable")
    added = set(new.get("finalizers", ())) - set(old.get("finalizers", ()))
    if old.get("deletionTimestamp") and added:
        detail = "no new finalizers can be added if the object is being deleted, found new "
        detail += f"finalizers {sorted(added)}"
        yield forbidden_value("metadata.finalizers", detail)
