"""The archive: the outcomes of ended reservations, kept for a bounded time in bounded space.

A few ConfigMaps store it (docs/adr/0039), with one data key for each reservation. A key begins with
the time of the ending, so keys sort by time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from reserver.cluster import quantity
from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.times import parse_moment, show_micro, show_moment
from reserver.reservations.enums import Outcome
from reserver.reservations.outcome import Ending, describe
from reserver.reservations.owner import home
from reserver.stores.codec.rewrite import kept_spec
from reserver.stores.object.status_codec import summary

LABEL = "reserver.io/history"
"""The label of each ConfigMap of the archive."""

SHARDS = 8
"""Number of ConfigMaps."""

SHARD_BYTES = 512 * 1024
"""Bound on the keys and values of one ConfigMap, in bytes; the API server allows 1 MiB."""

NAMESPACE_BYTES = 256 * 1024
"""Bound on the entries of one namespace, in bytes."""

NAMESPACE_MOST = 500
"""Most archived reservations of one namespace."""

_MOST_CLAIMS = 10
_MOST_RESOURCES = 16
_MOST_TEXT = 256
"""Most characters of a description, and of an author, that are kept."""

_SAME_S = 10
"""Times of endings are rounded to so many seconds, so that several Reservers write the same key."""


class ArchivedClaim(msgspec.Struct, frozen=True, omit_defaults=True):
    """A claimed slot: the pod, its node and, if recorded, the time of the claim."""

    uid: str
    pod: str = ""
    node: str = ""
    at: str = ""


class ArchivedReservation(
    msgspec.Struct, rename="camel", frozen=True, omit_defaults=True, kw_only=True
):
    """An ended reservation.

    Attributes:
        id: its ref.
        namespace: the namespace of its ConfigMap or object.
        owner_namespace: the namespace of its owners.
        owners: its owners, in words.
        since: the time at which Reserver first saw it, RFC 3339.
        ended: the time at which Reserver saw its end, RFC 3339.
        expires_at: the time of its expiry, RFC 3339; empty without one.
        nodes: the nodes on which it held.
        resources: the resources of one slot.
        slots: the number of slots.
        claimed: the number of claimed slots.
        claims: the first claims.
        spec: for restoring a removed or idle one: JSON without its expiry; else empty.
    """

    name: str
    id: str
    namespace: str
    owner_namespace: str
    owners: str
    outcome: Outcome
    since: str
    ended: str
    expires_at: str = ""
    nodes: list[str] = []
    resources: dict[str, str] = {}
    slots: int = 1
    claimed: int = 0
    claims: list[ArchivedClaim] = []
    description: str = ""
    author: str = ""
    spec: str = ""

    @property
    def told(self) -> str:
        """The outcome and its time, as a clause for an error message."""
        pods = [claim.pod for claim in self.claims if claim.pod]
        what = describe(self.outcome, pods, self.claimed, self.slots)
        return f"{what} at {show_moment(int(parse_moment(self.ended)))}"


def past(ending: Ending) -> ArchivedReservation:
    """Return the archived form of an ended reservation."""
    reservation = ending.reservation
    words = summary(reservation, ending.claimed, home="")
    resources = sorted(reservation.resources.items())[:_MOST_RESOURCES]
    return ArchivedReservation(
        name=reservation.ref.key,
        id=str(reservation.ref),
        namespace=reservation.ref.namespace,
        owner_namespace=home(reservation.owners, reservation.rules),
        owners=words.owners,
        outcome=ending.outcome,
        since=show_moment(ending.since or ending.at),
        ended=show_micro(ending.at),
        expires_at=show_moment(reservation.expires_at) if reservation.expires_at else "",
        nodes=[part.node for part in reservation.parts][:_MOST_CLAIMS],
        resources={name: quantity.show(name, amount) for name, amount in resources},
        slots=reservation.slots_beside(ending.claimed),
        claimed=ending.claimed,
        claims=[
            ArchivedClaim(c.uid, c.pod, c.node, show_moment(c.at) if c.at else "")
            for c in ending.claims[:_MOST_CLAIMS]
        ],
        description=reservation.description[:_MOST_TEXT],
        author=reservation.author[:_MOST_TEXT],
        spec=kept_spec(ending),
    )


@dataclass(slots=True)
class _Shard:
    """The entries of one ConfigMap, including those not written yet.

    Attributes:
        kept: entries and their bytes, by namespace and key, oldest first.
        used: bytes by namespace.
        size: bytes of all entries.
        pending: changes to write: values by key, None to remove the key.
    """

    kept: dict[str, dict[str, tuple[ArchivedReservation, int]]] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    size: int = 0
    pending: dict[str, str | None] = field(default_factory=dict)

    def put(self, key: str, one: ArchivedReservation, text: str) -> None:
        self.remove(one.namespace, key)
        size = len(key) + len(text.encode())
        self.kept.setdefault(one.namespace, {})[key] = (one, size)
        self.used[one.namespace] = self.used.get(one.namespace, 0) + size
        self.size += size

    def remove(self, namespace: str, key: str) -> None:
        kept = self.kept.get(namespace, {})
        found = kept.pop(key, None)
        if found is None:
            return
        self.size -= found[1]
        self.used[namespace] -= found[1]
        if not kept:
            del self.kept[namespace], self.used[namespace]

    def evict(self, oldest: str) -> None:
        """Drop the entries before a key, and the oldest entries beyond the bounds.

        A namespace beyond its bound loses its own entries. A shard beyond its bound loses entries
        of its largest namespace, so a namespace cannot push out the entries of a smaller one.
        """
        for namespace in tuple(self.kept):
            while self._has_too_much(namespace, oldest):
                self._drop_first(namespace)
        while self.size > SHARD_BYTES:
            self._drop_first(max(self.used, key=self.used.__getitem__))

    def _has_too_much(self, namespace: str, oldest: str) -> bool:
        kept = self.kept.get(namespace, {})
        return bool(kept) and (
            len(kept) > NAMESPACE_MOST
            or self.used[namespace] > NAMESPACE_BYTES
            or next(iter(kept)) < oldest
        )

    def _drop_first(self, namespace: str) -> None:
        key = next(iter(self.kept[namespace]))
        self.remove(namespace, key)
        if self.pending.get(key) is None:
            self.pending[key] = None
        else:
            del self.pending[key]  # Probably not written yet; if it was, `load` finds it again.


class Archive:
    """The outcomes of ended reservations.

    Attributes:
        kept_s: the time to keep each outcome, in seconds.
    """

    def __init__(self, kept_s: float) -> None:
        """Create an empty archive."""
        self.kept_s = kept_s
        self._shards = [_Shard() for _ in range(SHARDS)]

    def add(self, one: ArchivedReservation, now: float) -> int:
        """Add a reservation that ended by `now` (unix seconds); return the number of its shard."""
        number = _hash(one.namespace)[0] % SHARDS
        shard, text = self._shards[number], encode(one).decode()
        moment = int(parse_moment(one.ended)) // _SAME_S * _SAME_S
        key = f"{moment:010d}-{_hash(one.id, one.since, one.expires_at).hex()[:12]}"
        shard.put(key, one, text)
        shard.pending[key] = text
        shard.evict(self._oldest(now))
        return number

    def load(self, number: int, data: Mapping[str, str], now: float) -> Generator[None]:
        """Replace a shard by the data of its ConfigMap, and keep the changes not written yet."""
        shard = _Shard()
        for key in sorted(data):
            if (one := _read(data[key])) is not None:
                shard.put(key, one, data[key])
            yield
        shard.pending = self._shards[number].pending
        for key, text in tuple(shard.pending.items()):
            one = _read(text or data.get(key, ""))
            if one is not None and text is None:
                shard.remove(one.namespace, key)
            elif one is not None and text is not None:
                shard.put(key, one, text)
        shard.evict(self._oldest(now))
        self._shards[number] = shard

    def pending(self, number: int) -> dict[str, str | None]:
        """Return the changes to write to a shard: values by key, None to remove the key."""
        return dict(self._shards[number].pending)

    def written(self, number: int, changes: Mapping[str, str | None]) -> None:
        """Remove written changes from the pending changes of a shard."""
        pending = self._shards[number].pending
        for key, text in changes.items():
            if pending.get(key, "") == text:
                del pending[key]

    def size(self, number: int) -> int:
        """Return the size of a shard, in bytes."""
        return self._shards[number].size

    def keys(self, number: int) -> set[str]:
        """Return the keys of a shard, including those not written yet."""
        return {key for kept in self._shards[number].kept.values() for key in kept}

    def all(self, now: float) -> Iterator[tuple[str, ArchivedReservation]]:
        """Yield the keys and reservations that are kept at `now` (unix seconds), unordered."""
        oldest = self._oldest(now)
        for shard in self._shards:
            for kept in tuple(shard.kept.values()):
                yield from ((key, one) for key, (one, _) in tuple(kept.items()) if key >= oldest)

    def last(self, name: str, now: float) -> ArchivedReservation | None:
        """Return the reservation of a name or id that ended last; None if none is archived."""
        found = (one for _, one in self.all(now) if name in {one.name, one.id})
        return max(found, default=None, key=lambda one: one.ended)

    def _oldest(self, now: float) -> str:
        return f"{max(0, int(now - self.kept_s)):010d}"


def _hash(*parts: str) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest()


def _read(text: str) -> ArchivedReservation | None:
    try:
        return decode(ArchivedReservation, text.encode())
    except InvalidInput:
        return None  # Not written by Reserver.
