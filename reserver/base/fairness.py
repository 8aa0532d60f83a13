"""Fair counts: of what all share nobody takes so much that others have no part (docs/adr/0061)."""

from __future__ import annotations

from collections import Counter


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
