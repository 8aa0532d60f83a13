"""The options of lists and watches, and the pages of lists.

apimachinery's internalversion `ListOptions` with its validation, and storage/continue.go.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from reserver_demo.apiserver.resource import Resource
from reserver_demo.apiserver.selectors import Selector, parse_fields, parse_labels
from reserver_demo.apiserver.status import (
    Cause,
    StatusError,
    bad_request,
    expired,
    forbidden_value,
    invalid,
    revision_in_future,
)
from reserver_demo.apiserver.store import Key, Store, Stored

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)
_ANY = -1
"""The revision in a continue token that requests the present state."""
_FIRST = Key("", "")
_AFTER = "\0"
"""Appended to a name: the smallest name after it."""


class _Token(msgspec.Struct):
    """A continue token: a revision, and the first key of the next page."""

    v: str
    rv: int
    start: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The options of a list or a watch.

    Attributes:
        selector: the selector of objects.
        revision: `resourceVersion`; None if absent, which for a watch means 0.
        exact: whether `resourceVersionMatch` is Exact.
        limit: objects on one page; 0 for all.
        continuation: the token of the former page.
        watch: whether the request is a watch.
        timeout: seconds after which a watch ends; None for the server's default.
        bookmarks: whether a watch sends bookmarks.
        initial_events: whether a watch begins with the present objects.
    """

    selector: Selector
    revision: int | None
    exact: bool
    limit: int
    continuation: str
    watch: bool
    timeout: int | None
    bookmarks: bool
    initial_events: bool


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list; `remaining` is None on the last page, and if the number is unknown."""

    items: list[Stored]
    revision: int
    continuation: str = ""
    remaining: int | None = None


def parse_options(query: Mapping[str, str], resource: Resource, namespace: str) -> ListOptions:
    """Read the query of a list or a watch.

    Raises:
        StatusError: 400 for a malformed option, 422 for options that exclude each other.
    """
    watch = _flag(query, "watch")
    revision = _number(query, "resourceVersion")
    match = query.get("resourceVersionMatch", "")
    initial = query.get("sendInitialEvents")
    if causes := _contradictions(query, watch=watch):
        raise invalid("ListOptions.meta.k8s.io", "", causes)
    return ListOptions(
        selector=Selector(
            namespace,
            parse_labels(query.get("labelSelector", "")),
            parse_fields(query.get("fieldSelector", ""), resource.fields),
        ),
        revision=revision,
        exact=match == "Exact",
        limit=_number(query, "limit") or 0,
        continuation=query.get("continue", ""),
        watch=watch,
        timeout=_number(query, "timeoutSeconds"),
        bookmarks=_flag(query, "allowWatchBookmarks"),
        # A watch from 0 or without resourceVersion begins with the present objects.
        initial_events=not revision if initial is None else _flag(query, "sendInitialEvents"),
    )


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in {"1", "true", "t"}


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not text.isdecimal():
        raise bad_request(f"Invalid value for query parameter {name}: {text!r}")
    return int(text)


def _contradictions(query: Mapping[str, str], *, watch: bool) -> list[Cause]:
    """Return the options that exclude each other (`ValidateListOptions`)."""
    match = query.get("resourceVersionMatch", "")
    initial = query.get("sendInitialEvents")
    revision = query.get("resourceVersion", "")
    field = "resourceVersionMatch"
    causes = []
    if watch and initial is not None and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(forbidden_value(field, detail))
    if watch and match and initial is None:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(forbidden_value(field, detail))
    if match not in {"", "Exact", "NotOlderThan"} and (not watch or initial is not None):
        detail = 'supported values: "Exact", "NotOlderThan", ""'
        causes.append(
            Cause("FieldValueNotSupported", f'Unsupported value: "{match}": {detail}', field)
        )
    if not watch and initial is not None:
        detail = "sendInitialEvents is forbidden for list"
        causes.append(forbidden_value("sendInitialEvents", detail))
    if not watch and match and not revision:
        detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        causes.append(forbidden_value(field, detail))
    if not watch and match == "Exact" and revision == "0":
        detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        causes.append(forbidden_value(field, detail))
    return causes


def list_page(store: Store, resource: Resource, options: ListOptions) -> Page:
    """Return the requested page.

    Raises:
        StatusError: 400 for a bad token, 410 for one that is too old, 504 for the future.
    """
    if options.revision and options.revision > store.revision:
        raise revision_in_future(options.revision, store.revision)
    start, asked = _start(options)
    revision = asked or store.revision
    found = [
        stored
        for stored in _items(store, resource, revision, start)
        if stored.key >= start and options.selector.matches(stored.content, resource.fields)
    ]
    if not options.limit or len(found) <= options.limit:
        return Page(found, revision)
    page = found[: options.limit]
    # Etcd counts objects, not matches, so a narrow list cannot say how many remain.
    remaining = None if options.selector.is_narrow else len(found) - len(page)
    return Page(page, revision, _encode(revision, page[-1].key), remaining)


def _items(store: Store, resource: Resource, revision: int, start: Key) -> list[Stored]:
    collection = store.collection(resource.plural)
    if revision == store.revision:
        return collection.items()
    try:
        return collection.items_at(revision)
    except StatusError:
        if start == _FIRST:
            raise expired("The resourceVersion for the provided list is too old.") from None
        raise expired(_EXPIRED, _encode(_ANY, start)) from None


def _start(options: ListOptions) -> tuple[Key, int | None]:
    """Return the first key of a page, and its revision; None for the present revision."""
    if not options.continuation:
        return _FIRST, options.revision if options.exact else None
    try:
        padded = options.continuation + "=" * (-len(options.continuation) % 4)
        token = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Token)
    except (ValueError, msgspec.DecodeError) as error:
        raise bad_request(f"continue key is not valid: {error}") from error
    namespace, _, name = token.start.rpartition("/")
    return Key(namespace, name), None if token.rv == _ANY else token.rv


def _encode(revision: int, last: Key) -> str:
    start = f"{last.namespace}/{last.name.rstrip(_AFTER)}{_AFTER}"
    token = msgspec.json.encode(_Token(v="meta.k8s.io/v1", rv=revision, start=start))
    return base64.urlsafe_b64encode(token).decode().rstrip("=")
