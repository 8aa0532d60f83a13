"""Fairness: of what all share nobody takes so much that others have no part (docs/adr/0061)."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class FairCount:
    """Counts what is taken, by who has it: a namespace, as a rule.

    Whoever asks may have as much as is left, and no more than is left for all others. So one who is
    alone has half, of two who keep asking each has a third, and who comes new finds something. Who
    is counted has come to stay: nothing is taken back.
    """

    def __init__(self, most: int) -> None:
        """Begin with nothing taken, of so much in all."""
        self._most = most
        self._total = 0
        self._of: Counter[str] = Counter()

    @classmethod
    def each(cls, most: int) -> FairCount:
        """Return one where who is alone may have so much, and all of them less than twice that."""
        return cls(2 * most - 1)

    @property
    def total(self) -> int:
        """How much is taken."""
        return self._total

    def of(self, who: str) -> int:
        """Return how much one has."""
        return self._of[who]

    def has_room(self, who: str, besides: int = 0) -> bool:
        """Return whether one may have one more.

        Args:
            who: asks.
            besides: so much more counts as taken for who asks, and for nobody else.
        """
        return self._of[who] + besides < self._most - self._total - besides

    def add(self, who: str, number: int = 1) -> None:
        """Count what one takes, or gives back if that is less than nothing."""
        self._total += number
        self._of[who] += number
        if not self._of[who]:
            del self._of[who]


class FairMemory(dict[K, V]):
    """Remembers what was last put there, of all who share it (namespaces, as a rule).

    Once it is full, an eighth is forgotten of what is oldest of those who have most. So who fills
    it forgets what is its own, and others keep theirs. Reading is a dict's: only `put` writes.
    """

    def __init__(self, most: int) -> None:
        """Begin empty, with room for so many values in all."""
        super().__init__()
        self._most = most
        self._of: defaultdict[str, dict[K, None]] = defaultdict(dict)

    def put(self, who: str, key: K, value: V) -> None:
        """Remember a value of one of those who share it, as its latest; a key belongs to one."""
        own = self._of[who]
        if key in self:
            own.pop(key, None)
        own[key] = None
        self[key] = value
        if len(self) > self._most:
            self._forget()

    def _forget(self) -> None:
        level = _level([len(own) for own in self._of.values()], self._most * 7 // 8)
        for who, own in tuple(self._of.items()):
            for key in list(islice(own, max(0, len(own) - level))):
                del own[key]
                self.pop(key, None)
            if not own:
                del self._of[who]


def in_turns(every: Iterable[V], who: Callable[[V], str]) -> Iterator[V]:
    """Yield the first of each who shares, then the second of each, and so on."""
    of: defaultdict[str, deque[V]] = defaultdict(deque)
    for each in every:
        of[who(each)].append(each)
    turns = deque(of.values())
    while turns:
        turn = turns.popleft()
        yield turn.popleft()
        if turn:
            turns.append(turn)


def _level(sizes: Sequence[int], room: int) -> int:
    """Return how much each may keep so that all have room (max-min fairness)."""
    level = room
    for number, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        level = room // number
        if size >= level:
            break
        room -= size
    return level
