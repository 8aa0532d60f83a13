"""Moments, as the clock gives them: which of two is later can be told, even if it was set back."""

from __future__ import annotations

from typing import Self


class Moment(float):
    """Unix seconds, and how often the clock had been set back by then.

    A clock that is set back shows less than before, and a moment that is over shows less, too. Only
    who reads the clock can tell one from the other, so the clock says it with each moment. A number
    that says nothing of it is of a clock that was never set back.

    Attributes:
        set_back: how often it was.
    """

    __slots__ = ("set_back",)

    set_back: int

    def __new__(cls, at: float, set_back: int = 0) -> Self:
        """Make a moment of unix seconds."""
        moment = super().__new__(cls, at)
        moment.set_back = set_back
        return moment

    @classmethod
    def of(cls, at: float) -> Moment:
        """Return a number as a moment."""
        return at if isinstance(at, Moment) else Moment(at)

    def comes_after(self, other: Moment) -> bool:
        """Return whether this is later; what the clock showed before it was set back is not."""
        return (self.set_back, self) > (other.set_back, other)
