"""What `reserver serve` and a process that rebalances for it tell each other, a line each.

The one that serves begins, with `Orders`. Nobody else has an end of the channel, so
that its end is the end of whoever is at the other one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from reserver.rebalance.modes import Compat, Mode

MOST_BYTES = 64 * 2**20
"""Of one line: the metrics of many pods, or what is held on many nodes."""


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """The orders for the process that rebalances.

    Attributes:
        policy: path of the policy's file; empty for none.
        make_room: for pending pods, instead of what the policy moves.
        interval_s: from the beginning of a round to that of the next, in seconds.
        compat: how the policy is judged.
        mode: what has to be there before a pod is evicted.
        dry_run: nothing is evicted.
        namespace: that of the Lease.
        kubeconfig: path; empty for what `serve` takes without one.
        log_level: from this level on.
    """

    policy: str
    make_room: bool
    interval_s: float
    compat: Compat
    mode: Mode
    dry_run: bool
    namespace: str
    kubeconfig: str
    log_level: str


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message of the process that rebalances.

    Attributes:
        asks_holds: it has to know what is held.
        metrics: its metrics as Prometheus reads them; empty for nothing new.
    """

    asks_holds: bool = False
    metrics: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer of the process that serves.

    Attributes:
        held: what reservations hold, by node; None if nobody has asked.
        stops: it ends, and so has the other one.
    """

    held: Mapping[str, Mapping[str, int]] | None = None
    stops: bool = False


T = TypeVar("T")


def line(value: Orders | Told | Answer) -> bytes:
    """Return a value as a line."""
    return msgspec.json.encode(value) + b"\n"


def read(kind: type[T], written: bytes) -> T:
    """Return the value of a line.

    Raises:
        msgspec.DecodeError: it is no such line.
    """
    return msgspec.json.decode(written, type=kind)
