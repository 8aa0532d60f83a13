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
    """It has not started, or some of its slots have no place yet."""

    ACTIVE = "Active"
    CLAIMED = "Claimed"
    EXPIRED = "Expired"
    FAILED = "Failed"
    """The node that it names does not exist; it holds as soon as there is such a node."""

    INVALID = "Invalid"
    """What is written cannot be read, so nothing is held; the ledger knows none of these."""


class Outcome(StrEnum):
    """The outcome of a reservation that is over."""

    CLAIMED = "Claimed"
    """Every slot was claimed."""

    EXPIRED = "Expired"
    REMOVED = "Removed"
    """Somebody removed it before."""


class Strategy(StrEnum):
    """Which of several nodes a placement prefers."""

    PACK = "pack"
    """The fullest one that has room for all slots."""

    SPREAD = "spread"
    """The emptiest one, slot by slot."""


class StoreKind(StrEnum):
    """The kind of a store."""

    CONFIGMAP = "configmap"
    """It is an entry of a ConfigMap."""

    OBJECT = "object"
    """It is a Reservation object."""
