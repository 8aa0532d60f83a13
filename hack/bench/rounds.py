"""Times alternatives in turns, so that a noisy machine affects all of them.

One round times each alternative several times; the order rotates from round to round. A number is
the median over all rounds, a ratio the median of the ratios within each round.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

P50, P99 = 0.50, 0.99
_NOTHING: Mapping[str, Callable[[], object]] = {}


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds per call of one alternative, round by round, each round in ascending order.

    Attributes:
        rounds: all the calls' durations in seconds.
    """

    rounds: Sequence[Sequence[float]]

    def seconds(self, quantile: float = P50) -> float:
        """Return the quantile of a round, as the median over the rounds, in seconds."""
        return statistics.median(self.each_round(quantile))

    def ratio_to(self, other: "Timings", quantile: float = P50) -> float:
        """Return the ratio of its duration to the other alternative's."""
        pairs = zip(self.each_round(quantile), other.each_round(quantile), strict=True)
        return statistics.median(own / others for own, others in pairs)

    def per(self, parts: int) -> "Timings":
        """Return the timings of one of `parts` equal parts of each call."""
        return Timings([[seconds / parts for seconds in each] for each in self.rounds])

    def each_round(self, quantile: float) -> list[float]:
        """Return the quantile of each round, in seconds."""
        return [calls[min(int(len(calls) * quantile), len(calls) - 1)] for calls in self.rounds]


def side_by_side(
    alternatives: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    calls: int,
    before: Mapping[str, Callable[[], object]] = _NOTHING,
) -> dict[str, Timings]:
    """Return the timings of each alternative.

    Args:
        alternatives: the calls to time, by name.
        rounds: number of turns of each alternative.
        calls: timed calls in a turn; one untimed call precedes the first turn.
        before: an untimed call before each call of an alternative.
    """
    for call in alternatives.values():
        call()
    order = list(alternatives)
    taken: dict[str, list[list[float]]] = {name: [] for name in order}
    for _ in range(rounds):
        for name in order:
            first = before.get(name, _nothing)
            taken[name].append(sorted(_time(alternatives[name], first) for _ in range(calls)))
        order = order[1:] + order[:1]
    return {name: Timings(each) for name, each in taken.items()}


def _nothing() -> None:
    """Do nothing."""


def _time(call: Callable[[], object], first: Callable[[], object]) -> float:
    first()
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
