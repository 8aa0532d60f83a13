"""The status of a SchedPatch: the number of patched pods, and the stocks of slots."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import Int64
from reserver.k8s.objects.objects import Condition, ConditionWriter, ResourceMetadata, decode
from reserver.k8s.objects.times import show_moment
from reserver.patches.book import PatchEntry
from reserver.patches.codec import MOST_PODS
from reserver.patches.slots import Record, Stock

_RANGES = re.compile(r"([0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*)?")
_MOST_STOCKS = 64

ACTIVE = "Active"
CONFLICTING = "Conflicting"


class StockObject(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """The slots that one process may hand out."""

    by: str
    slots: str = ""
    revoked: bool = False


class SlotsObject(msgspec.Struct, rename="camel", frozen=True):
    """The spent slots and the stocks."""

    spent: str = ""
    stocks: list[StockObject] = []


class PatchStatus(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """The whole status subresource: a write replaces all its fields."""

    observed_generation: Int64 = 0
    patched_pods: int = 0
    expires_at: str | None = None
    slots: SlotsObject = SlotsObject()
    conditions: list[Condition] = []


def read_status(raw: msgspec.Raw) -> PatchStatus:
    """Return a status; the default without one.

    Raises:
        InvalidInput: Reserver did not write it.
    """
    return decode(PatchStatus, raw) if bytes(raw) else PatchStatus()


def read_record(status: PatchStatus) -> Record:
    """Return the record of slots in a status.

    Raises:
        InvalidInput: Reserver did not write it.
    """
    stocks = tuple(
        Stock(each.by, _numbers(each.slots), each.revoked)
        for each in status.slots.stocks[:_MOST_STOCKS]
    )
    return Record(_numbers(status.slots.spent), stocks)


def show_status(
    entry: PatchEntry, record: Record, before: PatchStatus, metadata: ResourceMetadata, now: float
) -> PatchStatus:
    """Return the status of a patch with a record of its slots."""
    patch, spent = entry.patch, len(record.spent)
    say = ConditionWriter(before.conditions, metadata.generation, now).condition
    if patch.is_over(now):
        active = say(ACTIVE, "Expired", "it patches no further pods", holds=False)
    elif spent >= patch.max_count:
        message = f"{spent} pods are patched; for more raise maxCount"
        active = say(ACTIVE, "AllPatched", message, holds=False)
    else:
        active = say(ACTIVE, "Patching", "it patches pods that match", holds=True)
    if entry.conflict is None:
        conflict = say(CONFLICTING, "NoConflict", "no pod has contradicted it", holds=False)
    else:
        pod, problem = entry.conflict
        message = f"{pod} was not patched: {problem}"
        conflict = say(CONFLICTING, "PodContradicts", message, holds=True)
    return PatchStatus(
        observed_generation=metadata.generation,
        patched_pods=spent,
        expires_at=None if patch.expires_at is None else show_moment(patch.expires_at),
        slots=SlotsObject(
            spent=_ranges(record.spent),
            stocks=[
                StockObject(each.by, _ranges(each.slots), each.is_revoked) for each in record.stocks
            ],
        ),
        conditions=[active, conflict],
    )


def show_invalid(
    error: InvalidInput, before: PatchStatus, metadata: ResourceMetadata, now: float
) -> PatchStatus:
    """Return the status of an invalid patch; its count does not change."""
    say = ConditionWriter(before.conditions, metadata.generation, now).condition
    invalid: PatchStatus = msgspec.structs.replace(
        before,
        observed_generation=metadata.generation,
        conditions=[say(ACTIVE, "Invalid", str(error), holds=False)],
    )
    return invalid


def patch_body(status: PatchStatus, metadata: ResourceMetadata) -> dict[str, Any]:
    """Return the merge patch that replaces a status, with the read version as precondition."""
    version = {"resourceVersion": metadata.resource_version, "uid": metadata.uid}
    return {"metadata": version, "status": msgspec.to_builtins(status)}


def _numbers(text: str) -> frozenset[int]:
    if not _RANGES.fullmatch(text):
        raise InvalidInput("status.slots", f"{text[:50]!r} are no numbers", "leave it to Reserver")
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), min(int(last or first), MOST_PODS) + 1))
    return frozenset(found)


def _ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ranges, such as ``0-6,9``."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)
