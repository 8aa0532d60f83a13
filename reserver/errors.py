"""The exceptions that Reserver raises, in one tree.

ReserverError
├── InvalidInput       a value that somebody wrote is not acceptable
│   └── Fault          or it cannot be judged, because of a fault of ours
├── ConfigurationError Reserver was started with something that it cannot work with
├── NotReady           the caches do not show the cluster well enough to decide
├── Taken              a reservation of that name was written meanwhile
├── TooMany            somebody asks for more than their share
├── LeadershipLost     another Reserver may answer from now on
└── ApiError           the API server answered with a failure, or not at all
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from reserver.printable import printable

_NOT_APPLIED = "the server rejected our request due to an error in our request"


class ReserverError(Exception):
    """Base of every error that Reserver raises on purpose."""


class InvalidInput(ReserverError):
    """A value that somebody wrote is not acceptable.

    It is told in events, statuses, answers and on terminals, so it holds no character that is not
    seen: what was written is quoted with escapes.

    Attributes:
        path: where the value stands, e.g. ``resources.cpu``; empty for the whole document.
        problem: what is wrong, with the value quoted.
        remedy: what to write instead.
    """

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        self.path = printable(path)
        self.problem = printable(problem)
        self.remedy = printable(remedy)
        super().__init__(self.path, self.problem, self.remedy)

    def __str__(self) -> str:
        """Return one line: path, problem, remedy."""
        place = f"{self.path}: " if self.path else ""
        return f"{place}{self.problem}; {self.remedy}"

    def under(self, parent: str) -> InvalidInput:
        """Return the same error as seen from the document that holds this value."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return type(self)(f"{parent}{joint}{self.path}", self.problem, self.remedy)


class Fault(InvalidInput):
    """A value cannot be judged, because of a fault of ours: something raised."""


class ConfigurationError(ReserverError):
    """Reserver was started with something that it cannot work with."""


class NotReady(ReserverError):
    """The caches do not show the cluster well enough to decide."""


class Taken(ReserverError):
    """A reservation of that name was written meanwhile."""


class TooMany(ReserverError):
    """Somebody asks for more than their share."""


class LeadershipLost(ReserverError):
    """Another Reserver may answer from now on, so this one must not."""


class ApiError(ReserverError):
    """The API server answered with a failure, or did not answer.

    Attributes:
        status: the HTTP status; 0 when there was no answer.
        reason: the machine-readable reason of the Status object, e.g. ``Conflict``.
        message: the sentence of the Status object, or of the network error.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        """Return one line for a person."""
        line = f"{self.status} {self.reason}: {self.message}" if self.status else self.message
        return printable(line)  # An admission policy may quote what somebody wrote.

    @property
    def is_overtaken(self) -> bool:
        """Whether the ``test`` of a JSON patch failed: somebody else has written in between.

        What an admission policy, a validation or an immutable object says is 422 as well, in other
        words (NewGenericServerResponse in apimachinery/pkg/api/errors).
        """
        is_generic = self.message.startswith(_NOT_APPLIED)
        return self.status == HTTPStatus.UNPROCESSABLE_ENTITY and is_generic

    @property
    def is_absent(self) -> bool:
        """Whether there is no such object, or none any more."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def is_conflict(self) -> bool:
        """Whether there is another object of that name, version or UID than was expected."""
        return self.status == HTTPStatus.CONFLICT

    @property
    def is_forgotten(self) -> bool:
        """Whether nobody remembers that far back: all has to be listed."""
        return self.status == HTTPStatus.GONE

    @property
    def is_late(self) -> bool:
        """Whether somebody else was faster, in whichever way the API server says so."""
        return self.is_overtaken or self.is_conflict or self.is_absent

    @property
    def is_away(self) -> bool:
        """Whether nobody answers, or nobody is to be asked: whatever is asked next meets the same.

        A webhook that is away is another matter, which the API server answers with 500.
        """
        busy = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
        return not self.status or self.status in busy

    @property
    def is_definite(self) -> bool:
        """Whether the request certainly had no effect: the server refused it as it stood.

        No answer, a time-out or a failure inside the server leaves it open.
        """
        open_ended = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
        return (
            HTTPStatus.BAD_REQUEST <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR
            and self.status not in open_ended
        )


@contextmanager
def sparing(failed: Callable[[Exception], None]) -> Iterator[None]:
    """Let a fault cost no more than what is judged in this block (docs/adr/0017).

    A fault of the process itself goes on, and so does what ends a task.

    Args:
        failed: is told of the exception.
    """
    try:
        yield
    except (MemoryError, LeadershipLost):
        raise
    except Exception as exc:  # noqa: BLE001 - the one place: whatever it is, it is told
        failed(exc)
