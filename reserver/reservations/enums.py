"""Phases, policies and other words of reservations, shared with the client and the commands."""

from __future__ import annotations

from enum import StrEnum


class Policy(StrEnum):
    """Whether owners may land elsewhere when their seat cannot be had."""

    PREFER = "Prefer"
    """Owners land on their seat first, and elsewhere if kube-scheduler refuses it."""

    REQUIRE = "Require"
    """Owners may land nowhere else."""


class Phase(StrEnum):
    """The phase of a reservation."""

    PENDING = "Pending"
    """It has not started, has no place yet, or exceeds a quota of its namespace."""

    ACTIVE = "Active"
    """It holds: nobody but its owners gets what it reserves."""

    CLAIMED = "Claimed"
    """Every slot was claimed."""

    EXPIRED = "Expired"
    """Its time is over."""

    FAILED = "Failed"
    """The node that it names does not exist; it holds as soon as there is such a node."""

    INVALID = "Invalid"
    """The entry cannot be read, so it holds nothing; the ledger knows none of these."""


class Outcome(StrEnum):
    """The outcome of a reservation that is over."""

    CLAIMED = "Claimed"
    """Every slot was claimed."""

    EXPIRED = "Expired"
    """Its time was over before every slot was claimed."""

    REMOVED = "Removed"
    """Somebody removed it before that."""

    IDLE = "Idle"
    """No pod had a slot for as long as `releaseIfIdle` says."""


class Strategy(StrEnum):
    """Which of several nodes a placement prefers."""

    PACK = "pack"
    """The fullest one that has room for all slots."""

    SPREAD = "spread"
    """The emptiest one, slot by slot."""


class StoreKind(StrEnum):
    """The kind of a store."""

    CONFIGMAP = "configmap"
    """A store ConfigMap, with entries as data keys."""

    OBJECT = "object"
    """The Reservation objects of a namespace."""
