"""Reserver is killed, or not answered, at each of its writes in turn, and goes on from there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import pytest

MOST_WRITES = 60

Answer = TypeVar("Answer")


class Crash(BaseException):
    """Reserver is killed."""


class Writes:
    """Writes to an API server in memory; Reserver is killed at one of the writes.

    Attributes:
        paths: the paths of the writes, in order.
        crash_at: the number of the write at which Reserver is killed; None for never.
        is_done: whether that write is carried out.
        fault: the exception at that write: a crash, or an error of the API server.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.crash_at: int | None = None
        self.is_done = False
        self.fault: BaseException | type[BaseException] = Crash

    def carry_out(self, path: str, write: Callable[[], Answer]) -> Answer:
        """Write, and return the answer.

        Raises:
            Crash: it is the write at which Reserver is killed; or `fault`.
        """
        self.paths.append(path)
        is_last = len(self.paths) == self.crash_at
        if is_last and not self.is_done:
            raise self.fault
        answer = write()
        if is_last:
            raise self.fault
        return answer


class Mortal(Protocol):
    """A cluster, and its running Reserver."""

    @property
    def written(self) -> Writes:
        """The writes."""

    async def start(self) -> None:
        """Start Reserver, which knows only the stored objects."""

    async def settle(self) -> object:
        """Run until nothing is left to do."""


Cluster = TypeVar("Cluster", bound=Mortal)

done_or_not = pytest.mark.parametrize(
    "is_done",
    [
        pytest.param(False, id="before it is carried out", marks=pytest.mark.long),
        pytest.param(True, id="after it", marks=pytest.mark.long),
    ],
)


async def crash_at_each_write(
    begin: Callable[[], Awaitable[Cluster]],
    judge: Callable[[Cluster], None],
    *,
    is_done: bool,
    fault: BaseException | type[BaseException] = Crash,
) -> int:
    """Begin once per write, be killed at that write, start again, settle, and judge the end.

    Args:
        begin: makes a cluster with a Reserver that has something to do.
        judge: asserts that all is well.
        is_done: whether the write at which Reserver is killed is carried out.
        fault: the exception at that write; Reserver continues after any but a Crash.

    Returns:
        The number of writes without a kill; the end of that run is judged, too.
    """
    for number in range(1, MOST_WRITES + 1):
        cluster = await begin()
        written = cluster.written
        written.crash_at, written.is_done, written.fault = number, is_done, fault
        try:
            await cluster.settle()
        except Crash:
            await cluster.start()
            await cluster.settle()
        try:
            judge(cluster)
        except AssertionError as error:
            error.add_note(f"killed at write {number}")
            raise
        if len(written.paths) < number:
            return number - 1
    raise AssertionError(f"it takes more than {MOST_WRITES} writes")
