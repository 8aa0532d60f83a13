"""Phases, policies and other enums of reservations, shared with the client and the commands."""

from __future__ import annotations

from enum import StrEnum


class Policy(StrEnum):
    """Whether owners may land elsewhere when kube-scheduler refuses their seat."""

    PREFER = "Prefer"
    """Owners land on their seat first, and elsewhere if kube-scheduler refuses it."""

    REQUIRE = "Require"
    """Owners land on their seats only."""


class Phase(StrEnum):
    """The phase of a reservation."""

    PENDING = "Pending"
    """The reservation has not started, has no place yet, or exceeds a quota of its namespace."""

    ACTIVE = "Active"
    """The reservation holds: only its owners get the reserved resources."""

    CLAIMED = "Claimed"
    """Every slot was claimed."""

    EXPIRED = "Expired"
    """The reservation has expired, or was released when idle."""

    FAILED = "Failed"
    """The named node does not exist; the reservation holds as soon as the node exists."""

    INVALID = "Invalid"
    """The entry is invalid, so it holds nothing and is not in the ledger."""


class Outcome(StrEnum):
    """The outcome of an ended reservation."""

    CLAIMED = "Claimed"
    """Every slot was claimed."""

    EXPIRED = "Expired"
    """The reservation expired before every slot was claimed."""

    REMOVED = "Removed"
    """The reservation was removed before that."""

    IDLE = "Idle"
    """No pod had a slot for as long as `releaseIfIdle` says."""


class Strategy(StrEnum):
    """The node that a placement prefers among several."""

    PACK = "pack"
    """The fullest node that has room for all slots."""

    SPREAD = "spread"
    """The emptiest node for each slot."""


class StoreKind(StrEnum):
    """The kind of a store."""

    CONFIGMAP = "configmap"
    """A store ConfigMap, with entries as data keys."""

    OBJECT = "object"
    """The Reservation objects of a namespace."""
