"""What one object may say at most: that bounds what it costs everybody else (docs/adr/0016).

The numbers stand here and nowhere else; `scheduler-config/core/crd.yaml` repeats those that a
schema can state, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Annotated, NamedTuple

import msgspec

from reserver.errors import InvalidInput
from reserver.reservations.reservation import Ref, StoreKind

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""An integer of the Kubernetes API that is declared as int32."""

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer of the Kubernetes API that is declared as int64."""


class Limits(NamedTuple):
    """What the spec of one reservation may say at most.

    Attributes:
        spec_bytes: its length, as it is written; where Reserver has placed it included.
        owners: entries of ``owners``.
        owner_labels: labels that their selectors ask for, all together.
        resources: names in ``resources``.
        slots: how many pods may claim it.
        terms: of ``placement``: alternatives for nodes, terms about pods and spread constraints.
        tolerations: of ``placement``.
        labels: that the selectors of ``placement`` ask for, all together.
        values: that one term compares with, and namespaces that it names.
        owners_anywhere: they may be of other namespaces than the reservation.
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


TENANT = Limits(
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

HOME = Limits(
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


def limits_at(ref: Ref, home: str) -> Limits:
    """Return what a reservation may say at a place; `home` is Reserver's own namespace."""
    return TENANT if ref.kind is StoreKind.OBJECT and ref.namespace != home else HOME


class PodLimits(NamedTuple):
    """How much of what a pod says is read; what exceeds it is passed over, the pod is not.

    Attributes:
        part_bytes: the length of its labels, its owner references, its constraints, its claims on
            reservations, each.
        labels: of the pod.
        terms: of its constraints: alternatives for nodes, terms about pods, spread constraints.
        asked: labels that the selectors of its constraints ask for, all together.
        things: tolerations; ports of the node; PersistentVolumeClaims.
        claims: slots that it says it took.
    """

    part_bytes: int = 16_384
    labels: int = 128
    terms: int = 32
    asked: int = 64
    things: int = 128
    claims: int = 256


POD = PodLimits()

MOST_OFFERED = 256
"""Resources that a node may offer: each costs memory in the row of every node."""

MOST_OBJECTS = 1_000
"""Reservations of one namespace, other than Reserver's own, that are read."""

MOST_KEYS = 16_384
"""Data keys of one ConfigMap: no more reservations fit into its 1 MiB."""

MOST_ITEMS = 16_384
"""Items of one list: no more fit into its 1 MiB either."""

ITEM_BYTES = 4_096
"""The length of one item of a list."""

MOST_IN_SET = 500
"""Reservations that one call creates or asks about."""

SET_BYTES = 1_048_576
"""Their length, all together, as protobuf messages."""

SET_SLOTS_BESIDE_EACH_OTHER = 100
"""Their slots with a placement that is about neighbours: each is judged beside those before it."""


def check_bytes(size: int, most: int) -> None:
    """Refuse what is too long to be read; to be called before it is.

    Raises:
        InvalidInput: it is longer than `most` bytes.
    """
    if size > most:
        problem = f"{size} bytes are too many for one reservation"
        raise InvalidInput("", problem, f"keep it under {most}, or write several reservations")


def check_text(text: str, most: int) -> None:
    """Refuse a text that is too long to be read; to be called before it is.

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
