"""Marks: pods in eight characters, for records of so many claims that UIDs would take too much.

Two pods have the same mark once in 2^48. A claim that is known by its mark alone is as good as one
that is known by its UID: whoever asks for a pod's is found by either (`Account.claimant`).
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b

_SIGN = "~"
"""Begins a mark; no UID of a pod does."""

_LENGTH = 8


@lru_cache(maxsize=100_000)  # Each is asked for whenever the record is written.
def mark(pod_uid: str) -> str:
    """Return the mark of a pod; a mark is its own."""
    if is_mark(pod_uid):
        return pod_uid
    return _SIGN + urlsafe_b64encode(blake2b(pod_uid.encode(), digest_size=6).digest()).decode()


def is_mark(text: str) -> bool:
    """Return whether something is a mark, and no UID."""
    return text.startswith(_SIGN)


def joined(pods: Iterable[str]) -> str:
    """Return the marks of pods as one text, in their order."""
    return "".join(sorted(mark(each)[1:] for each in pods))


def parted(text: str) -> Iterator[str]:
    """Yield the marks that were joined."""
    for start in range(0, len(text) - _LENGTH + 1, _LENGTH):
        yield _SIGN + text[start : start + _LENGTH]
