"""The rule of every reader: input is read, or refused with a message that helps a person."""

from __future__ import annotations

from collections.abc import Callable

from reserver.cluster.quantity import MAX
from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import encode
from reserver.stores.entries import Entries

SEEN = 1_900_000_000.0
"""When all is read, unix seconds."""

LONGEST = 2000
"""Longest refusal, in characters: a refusal becomes an event."""


class Fault(Exception):
    """Something was read or refused as it must not be."""


def try_to(read: Callable[[bytes], object], raw: bytes) -> None:
    """Read, or be refused as a person can understand.

    Raises:
        Fault: the refusal is of no use; all other errors are passed on.
    """
    try:
        read(raw)
    except InvalidInput as exc:
        check_refusal(exc)


def check_refusal(error: InvalidInput) -> None:
    """Raise Fault unless an error names the problem and the remedy, and can be sent."""
    if not (error.problem and error.remedy):
        raise Fault(f"says too little: {error}")
    if len(str(error)) >= LONGEST:
        raise Fault(f"is too long: {str(error)[:LONGEST]}")
    encode(str(error))


def check_entries(entries: Entries) -> None:
    """Raise Fault unless each problem has a good message, and each other entry holds resources."""
    for problem in entries.problems:
        check_refusal(problem.error)
    for each in entries.reservations:
        amounts = each.resources.values()
        is_whole = (each.owners or each.rules) and each.slots >= 1 and amounts
        has_too_many = sum(part.slots for part in each.parts) > each.slots
        if not is_whole or has_too_many or not all(0 < amount <= MAX for amount in amounts):
            raise Fault(f"cannot be held: {each}")
