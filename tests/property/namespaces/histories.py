"""Histories of two namespaces with equal names.

Each history is played twice: the events of `a` alone, and among those of `b`. `a` sees the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

E = TypeVar("E")

HERE, THERE = "a", "b"
spaces = st.sampled_from([HERE, THERE])
NOW = 1000.0


def same(history: Sequence[tuple[str, E]], play: Callable[[Sequence[tuple[str, E]]], Any]) -> None:
    """Check that `a` sees the same without the events of `b`."""
    assert play([each for each in history if each[0] == HERE]) == play(history)
