"""Bounds on what one object may say, and so on its cost for others (docs/adr/0016).

`scheduler-config/core/crd.yaml` repeats those that a schema can state; a test compares the two.
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
        spec_bytes: its length as written, with where Reserver has placed it.
        owners: entries of ``owners``.
        owner_labels: labels that all their selectors ask for together.
        resources: names in ``resources``.
        slots: how many pods may claim it.
        terms: of ``placement``: node alternatives, pod terms and spread constraints.
        tolerations: of ``placement``.
        labels: that all selectors of ``placement`` ask for together.
        values: of one term; also its namespaces.
        owners_anywhere: they may be of other namespaces than the reservation.
        least_memory: bytes of memory that one slot holds if it holds any.
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
"""For what was in force before it exceeded a bound (docs/adr/0064): no step above 50 ms of CPU."""


def limits_at(ref: Ref, home: str) -> SpecLimits:
    """Return what a reservation may say at a ref; `home` is Reserver's own namespace."""
    return TENANT if ref.kind is StoreKind.OBJECT and ref.namespace != home else HOME


MOST_LABELS = 64
"""Labels that one request gives to a reservation, and that are shown of one."""

MOST_DESCRIPTION = 512
"""Characters of a reservation's description."""

MOST_OCCURRENCES = 100
"""Of a schedule with a ``count``: each is looked for when it is read."""

MOST_SKIPPED = 100
"""Occurrences of a schedule that are left out."""

MOST_LEAD_S = 168 * 3600
"""Seconds before its start at which an occurrence begins to hold."""

MOST_AUTHOR = 512
"""Characters of the name of who wrote it; that of a service account has 340 at most."""

MOST_NODES = 500
"""Whole nodes of one reservation: who is on them is looked at with each pod there."""

MOST_REFILLED = 1_000
"""How many slots, claimed and free ones together, a reservation that replaces claimed slots has at
most if it does not say so."""

LEAST_IDLE_S, MOST_IDLE_S = 60.0, 8_760 * 3_600.0
"""After how many seconds without a pod a reservation may be released: a minute to a year."""

MOST_CLAIMS_RECORDED = 1_000
"""How many claims of one reservation are recorded with UIDs; the others with eight characters each
(`digest.mark`), so that a status of `MOST_SLOTS` stays below etcd's 1.5 MiB."""


class PodLimits(NamedTuple):
    """How much of a pod is read. What exceeds a bound is ignored; the pod is not.

    The first three are of what its request follows from, which cannot be ignored: a pod beyond one
    of them cannot be read, and its node is in doubt (`scheduling.capacity_state`).

    Attributes:
        object_bytes: the length of the whole pod.
        containers: of the pod; as many init containers, and as many statuses of either.
        request_bytes: the length of the names and requests of all of these, as compact JSON.
        part_bytes: the length of its labels, of its owner references, of its constraints, and of
            its claims on reservations.
        terms: of its constraints: node alternatives, pod terms, spread constraints.
        asked: labels that all selectors of its constraints ask for together.
        things: its tolerations, its host ports, its volume claims.
        claims: slots that it says it claimed.
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

MOST_OFFERED = 256
"""Resources that one node may offer: each takes memory in the row of every node."""

MOST_OBJECTS = 1_000
"""Reservations that are read in one namespace other than Reserver's own."""

MOST_COPIES = 8
"""Refs of one namespace at which one reservation is written: each change of it costs each of them.

While it is moved there are two.
"""

MOST_KEYS = 16_384
"""Data keys of one ConfigMap; no more reservations fit into its 1 MiB."""

MOST_ITEMS = 16_384
"""Items of one list; no more fit into 1 MiB either."""

ITEM_BYTES = 4_096
"""The length of one item of a list."""

MOST_IN_SET = 500
"""Reservations that one call creates or asks about."""

SET_BYTES = 1_048_576
"""Their total length as protobuf messages."""

SLOTS_BESIDE_EACH_OTHER = 20
"""Slots of one reservation that may depend on neighbours: each is judged beside those before it."""

SET_SLOTS_BESIDE_EACH_OTHER = 100
"""Such slots of all of them together."""


def check_bytes(size: int, most: int) -> None:
    """Refuse what is too long, before it is read.

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
    """Refuse too many of something.

    Raises:
        InvalidInput: at `path`, naming the number and the bound.
    """
    if number > most:
        problem = f"{number} {what} are too many"
        raise InvalidInput(path, problem, f"write {most} at most, or several reservations")


def check_length(text: str, path: str, most: int) -> str:
    """Return a text, checked for being at most so many characters long.

    Raises:
        InvalidInput: at `path`.
    """
    if len(text) > most:
        raise InvalidInput(path, f"{len(text)} characters are too many", f"write {most} at most")
    return text


def check_amount(amount: int, text: str, path: str, slots: int = 1) -> int:
    """Return an amount, checked for one slot and for all slots together.

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
    """Refuse an amount of memory that nobody means: a wrong unit would hold nothing, unnoticed.

    Raises:
        InvalidInput: it is more than nothing and less than `least` bytes.
    """
    if not 0 < amount < least:
        return
    shown = quantity.shorten(text)
    number = _NUMBER.match(text)
    meant = {"": "Gi", "m": "Mi", "k": "Mi", "Ki": "Mi"}.get(text[number.end() :]) if number else ""
    remedy = f"did you mean {number[0]}{meant}?" if number and meant else "write it in Mi or Gi"
    problem = f"{shown} is {amount} byte{'s' if amount > 1 else ''}, less than a pod can run in"
    raise InvalidInput(path, problem, remedy)
