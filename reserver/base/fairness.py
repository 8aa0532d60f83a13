"""Fair shares of a bounded resource: no namespace can starve the others (docs/adr/0061)."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class FairCount:
    """Counts the units of a bounded resource by consumer, as a rule a namespace.

    A consumer may take another unit while its own units are fewer than the free ones. So a single
    consumer gets half, two greedy consumers get a third each, and a new consumer finds room. Units
    are never revoked.
    """

    def __init__(self, most: int) -> None:
        """Begin with all `most` units free."""
        self._most = most
        self._total = 0
        self._of: Counter[str] = Counter()

    @classmethod
    def each(cls, most: int) -> FairCount:
        """Return a count where one consumer alone gets `most`, and all get less than twice that."""
        return cls(2 * most - 1)

    @property
    def total(self) -> int:
        """Units in use."""
        return self._total

    def of(self, consumer: str) -> int:
        """Return the units of a consumer."""
        return self._of[consumer]

    def has_room(self, consumer: str, extra: int = 0) -> bool:
        """Return whether a consumer may take another unit.

        Args:
            consumer: the consumer, as a rule a namespace.
            extra: units that count as taken by this consumer in addition.
        """
        return self._of[consumer] + extra < self._most - self._total - extra

    def left(self, consumer: str) -> int:
        """Return how many more units a consumer may take before any other takes one."""
        return max(0, (self._most - self._total - self._of[consumer] + 1) // 2)

    def add(self, consumer: str, number: int = 1) -> None:
        """Add units to a consumer; a negative number returns units."""
        self._total += number
        self._of[consumer] += number
        if not self._of[consumer]:
            del self._of[consumer]


class FairMemory(dict[K, V]):
    """A bounded cache that consumers share, as a rule namespaces, and that evicts fairly.

    A full cache evicts an eighth of its values: the oldest of the consumers with the most values.
    So a consumer that fills the cache evicts its own values. Only `put` writes; read it as a dict.
    """

    def __init__(self, most: int) -> None:
        """Begin empty, with room for `most` values."""
        super().__init__()
        self._most = most
        self._of: defaultdict[str, dict[K, None]] = defaultdict(dict)

    def put(self, consumer: str, key: K, value: V) -> None:
        """Store a value as the newest of its consumer; a key belongs to one consumer."""
        own = self._of[consumer]
        if key in self:
            own.pop(key, None)
        own[key] = None
        self[key] = value
        if len(self) > self._most:
            self._forget()

    def _forget(self) -> None:
        level = _level([len(own) for own in self._of.values()], self._most * 7 // 8)
        for consumer, own in tuple(self._of.items()):
            for key in list(islice(own, max(0, len(own) - level))):
                del own[key]
                self.pop(key, None)
            if not own:
                del self._of[consumer]


def in_turns(items: Iterable[V], consumer: Callable[[V], str]) -> Iterator[V]:
    """Yield the first item of each consumer, then the second of each, and so on."""
    of: defaultdict[str, deque[V]] = defaultdict(deque)
    for item in items:
        of[consumer(item)].append(item)
    turns = deque(of.values())
    while turns:
        turn = turns.popleft()
        yield turn.popleft()
        if turn:
            turns.append(turn)


def _level(sizes: Sequence[int], room: int) -> int:
    """Return the share of each consumer so that all fit into `room` (max-min fairness)."""
    level = room
    for number, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        level = room // number
        if size >= level:
            break
        room -= size
    return level
