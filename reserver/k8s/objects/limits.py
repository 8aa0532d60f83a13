"""Bounds on the content of one object, and so on its cost for other tenants (docs/adr/0016).

`scheduler-config/core/crd.yaml` repeats the bounds that a schema can state; a test compares both.
"""

from __future__ import annotations

import re
from collections.abc import Sized
from typing import Annotated, NamedTuple

import msgspec

from reserver.cluster import quantity
from reserver.errors import InvalidInput
from reserver.reservations.enums import StoreKind
from reserver.reservations.reservation import Ref

_NUMBER = re.compile(r"[0-9.]+")

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""An integer of the Kubernetes API that is declared as int32."""

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer of the Kubernetes API that is declared as int64."""


class SpecLimits(NamedTuple):
    """Bounds on the spec of one reservation.

    Attributes:
        spec_bytes: length of the spec as written, including the placement by Reserver.
        owners: entries of ``owners``.
        owner_labels: labels that all selectors of owners together require.
        resources: names in ``resources``.
        slots: number of slots.
        terms: terms of ``placement``: node alternatives, pod terms and spread constraints.
        tolerations: tolerations of ``placement``.
        labels: labels that all selectors of ``placement`` together require.
        values: values of one term; also its namespaces.
        owners_anywhere: owners may be in other namespaces than the reservation.
        least_memory: least bytes of memory of one slot, if it holds memory.
    """

    spec_bytes: int
    owners: int
    owner_labels: int
    resources: int
    slots: int
    terms: int
    tolerations: int
    labels: int
    values: int
    owners_anywhere: bool
    least_memory: int = 2**20


TENANT = SpecLimits(
    spec_bytes=32_768,
    owners=100,
    owner_labels=128,
    resources=16,
    slots=1_000,
    terms=16,
    tolerations=32,
    labels=32,
    values=64,
    owners_anywhere=False,
)
"""For Reservations outside of Reserver's own namespace: the author may have no rights elsewhere."""

HOME = SpecLimits(
    spec_bytes=524_288,
    owners=1_000,
    owner_labels=1_000,
    resources=64,
    slots=100_000,
    terms=64,
    tolerations=128,
    labels=128,
    values=256,
    owners_anywhere=True,
)
"""For Reservations in Reserver's own namespace, ConfigMaps and gRPC calls: for trusted managers."""


KEPT = HOME._replace(owners=4_000, owner_labels=4_000, least_memory=0)
"""For reservations in force before they exceeded a bound (docs/adr/0064); each step below 50 ms."""


def limits_at(ref: Ref, home: str) -> SpecLimits:
    """Return the limits of a reservation at a ref; `home` is Reserver's own namespace."""
    return TENANT if ref.kind is StoreKind.OBJECT and ref.namespace != home else HOME


MOST_LABELS = 64
"""Most labels that one request sets on a reservation, and that are shown of one reservation."""

MOST_DESCRIPTION = 512
"""Most characters of a reservation's description."""

MOST_OCCURRENCES = 100
"""Most occurrences of a schedule with ``count``: each is computed when the schedule is read."""

MOST_SKIPPED = 100
"""Most skipped occurrences of a schedule."""

MOST_LEAD_S = 168 * 3600
"""Most seconds before its start at which an occurrence begins to hold."""

MOST_AUTHOR = 512
"""Most characters of an author's name; the name of a service account has at most 340."""

MOST_NODES = 500
"""Most whole nodes of one reservation: each pod on them causes a scan of their pods."""

MOST_REFILLED = 1_000
"""Default bound on the slots, claimed and free together, of a reservation that replaces claimed
slots."""

LEAST_IDLE_S, MOST_IDLE_S = 60.0, 8_760 * 3_600.0
"""Bounds on the seconds without a pod after which a reservation may be released."""

MOST_CLAIMS_RECORDED = 1_000
"""Most claims of one reservation that its status lists with UIDs; further claims have eight
characters each (`digest.mark`), so that a status of `HOME.slots` stays below etcd's 1.5 MiB."""


class PodLimits(NamedTuple):
    """Bounds on the parts of a pod that are read; parts beyond a bound are ignored.

    The first three bound the inputs of the pod's request, which cannot be ignored: a pod beyond one
    of them is unreadable, and its node is uncertain (`scheduling.capacity_state`).

    Attributes:
        object_bytes: length of the whole pod.
        containers: containers; also init containers, and the statuses of either.
        request_bytes: length of the names and requests of all these, as compact JSON.
        part_bytes: length of its labels, of its owner references, of its constraints, and of its
            claims on reservations.
        labels: labels of the pod.
        terms: terms of its constraints: node alternatives, pod terms, spread constraints.
        asked: labels that all selectors of its constraints together require.
        things: its tolerations, its host ports, its volume claims.
        claims: slots in its claims annotation.
    """

    object_bytes: int = 786_432
    containers: int = 1_000
    request_bytes: int = 65_536
    part_bytes: int = 16_384
    labels: int = 128
    terms: int = 32
    asked: int = 64
    things: int = 128
    claims: int = 256


POD = PodLimits()

MOST_NAME = 253
"""Most characters of an object's name. What is longer names nothing, and need not be kept whole."""

MOST_OFFERED = 256
"""Most resources of one node: each takes memory in the row of every node."""

MOST_OBJECTS = 1_000
"""Most Reservations that are read in one namespace other than Reserver's own."""

MOST_COPIES = 8
"""Most refs of one namespace with the same reservation: each change of it costs each of them.

During a move between stores there are two.
"""

MOST_KEYS = 16_384
"""Most data keys of one ConfigMap; no more reservations fit into its 1 MiB."""

MOST_ITEMS = 16_384
"""Most items of one list; no more fit into 1 MiB either."""

ITEM_BYTES = 4_096
"""Most bytes of one item of a list."""

MOST_IN_SET = 500
"""Most reservations that one call creates or queries."""

SET_BYTES = 1_048_576
"""Most bytes of all these reservations as protobuf messages."""

SLOTS_BESIDE_EACH_OTHER = 20
"""Most slots with constraints on neighbours in one reservation: each is placed next to the earlier
ones."""

SET_SLOTS_BESIDE_EACH_OTHER = 100
"""Most such slots in all reservations of a call together."""


def check_bytes(size: int, most: int) -> None:
    """Refuse a document that is too long, before it is read.

    Raises:
        InvalidInput: it is longer than `most` bytes.
    """
    if size > most:
        problem = f"{size} bytes are too many for one reservation"
        raise InvalidInput("", problem, f"keep it under {most}, or write several reservations")


def check_text(text: str, most: int) -> None:
    """Refuse a text that is too long, before it is read.

    Raises:
        InvalidInput: it is longer than `most` bytes.
    """
    check_bytes(len(text.encode(errors="replace")), most)


def check_count(things: Sized, path: str, most: int) -> None:
    """Refuse a list or a mapping with too many entries.

    Raises:
        InvalidInput: at `path`.
    """
    check_number(len(things), path, most, "entries")


def check_number(number: int, path: str, most: int, what: str) -> None:
    """Refuse too many items, which `what` names in the plural.

    Raises:
        InvalidInput: at `path`, with the number and the bound.
    """
    if number > most:
        problem = f"{number} {what} are too many"
        raise InvalidInput(path, problem, f"write {most} at most, or several reservations")


def check_length(text: str, path: str, most: int) -> str:
    """Return a text if it has at most `most` characters.

    Raises:
        InvalidInput: at `path`.
    """
    if len(text) > most:
        raise InvalidInput(path, f"{len(text)} characters are too many", f"write {most} at most")
    return text


def check_amount(amount: int, text: str, path: str, slots: int = 1) -> int:
    """Return an amount if one slot and all slots together may hold it.

    Raises:
        InvalidInput: it is negative, or more than any node has.
    """
    if amount < 0:
        problem = f"{quantity.shorten(text)} is negative"
        raise InvalidInput(path, problem, "write the amount to hold")
    if amount > quantity.MAX:
        problem = f"{quantity.shorten(text)} is more than any node has"
        raise InvalidInput(path, problem, "check the unit")
    if amount * slots > quantity.MAX:
        problem = (
            f"{quantity.shorten(text)} for each of {slots} slots is too much for one reservation"
        )
        remedy = "check the unit; all slots together hold 2^53 bytes or millicores (8Pi) at most"
        raise InvalidInput(path, problem, remedy)
    return amount


def check_memory(amount: int, text: str, path: str, least: int) -> None:
    """Refuse a tiny amount of memory, which is a wrong unit and would hold nothing, unnoticed.

    Raises:
        InvalidInput: it is above zero and below `least` bytes.
    """
    if not 0 < amount < least:
        return
    shown = quantity.shorten(text)
    number = _NUMBER.match(text)
    unit = {"": "Gi", "m": "Mi", "k": "Mi", "Ki": "Mi"}.get(text[number.end() :]) if number else ""
    remedy = f"did you mean {number[0]}{unit}?" if number and unit else "write it in Mi or Gi"
    problem = f"{shown} is {amount} byte{'s' if amount > 1 else ''}, less than a pod can run in"
    raise InvalidInput(path, problem, remedy)
