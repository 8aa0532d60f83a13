"""Edits of one entry of a ConfigMap: insertion, removal from a list, completion."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from reserver.errors import InvalidInput
from reserver.k8s.objects.times import show_moment
from reserver.reservations.placement import Parts
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.codec import document, lifetime_codec, placement_codec
from reserver.stores.configmap import list_codec
from reserver.stores.edits import Edit, data_path


def insertion(entries: Mapping[str, str], *, into_empty: bool) -> list[dict[str, Any]]:
    """Return the JSON patch that adds keys to a ConfigMap, all or none.

    To the API server an absent path equals null (evanphx/json-patch v4), so the tests keep the
    patch from overwriting anything.
    """
    if into_empty:
        return [
            {"op": "test", "path": "/data", "value": None},
            {"op": "add", "path": "/data", "value": dict(entries)},
        ]
    tests = [{"op": "test", "path": data_path(key), "value": None} for key in entries]
    adds = [{"op": "add", "path": data_path(key), "value": text} for key, text in entries.items()]
    return [*tests, *adds]


MOST_REMOVED = 250
"""Most items of a list that one edit removes: each item is parsed again, which takes 0.01 s for so
many. The next edit removes further items."""


def remove(ref: Ref, seen: str, over: Collection[Reservation]) -> Edit | None:
    """Return the edit that removes ended reservations from a list; None if the list has none.

    Every other item of the list stays unmodified, including broken items.
    """
    items, identities = document.split_list(seen), {each.ref.item: each.identity for each in over}
    left = [item for item in items if not _is_over(item, ref, identities)]
    if len(left) == len(items):
        return None
    value = f"[{', '.join(left)}]" if left else None
    return Edit(ref, seen, value, "over")


def complete(ref: Ref, seen: str, reservation: Reservation, placed: Parts) -> Edit | None:
    """Return the edit that completes an entry; None if it is complete.

    It adds the expiresAt of a ttl, and the placements chosen by Reserver. Comments and layout of a
    YAML value are kept if the new lines can be appended.
    """
    written = document.parse(seen)
    news: dict[str, str] = {}
    desired = dict(written)
    if lifetime_codec.needs_stamp(written) and reservation.expires_at is not None:
        desired["expiresAt"] = news["expiresAt"] = show_moment(reservation.expires_at)
    if placed != reservation.placed:
        desired["placements"] = parts = placement_codec.show_parts(placed)
        news["placements"] = json.dumps(parts)
    if not news:
        return None
    reason = "placed" if "placements" in news else "stamp"
    if not seen.lstrip().startswith("{"):
        kept = [line for line in seen.rstrip().split("\n") if line.partition(":")[0] not in news]
        lines = [f"{name}: {text}" for name, text in news.items()]
        appended = "\n".join([*kept, *lines, ""])
        if _parse_or_none(appended) == desired:
            return Edit(ref, seen, appended, reason)
    return Edit(ref, seen, json.dumps(desired, ensure_ascii=False), reason)


def _is_over(item: str, ref: Ref, over: Mapping[str, str]) -> bool:
    name = list_codec.name_of(item)
    if name is not None and name not in over:
        return False  # Most items are not, and parsing one takes fifty times as long.
    try:
        reservation = list_codec.read_item(document.parse(item), ref)
    except InvalidInput:
        return False
    return over.get(reservation.ref.item) == reservation.identity


def _parse_or_none(text: str) -> Any:  # noqa: ANN401 - whatever YAML can hold
    try:
        return document.parse(text)
    except InvalidInput:
        return None
