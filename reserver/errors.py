"""The exceptions that Reserver raises, in one tree.

ReserverError
├── InvalidInput       a value that a user wrote is invalid
│   └── Fault          a bug of Reserver prevents it from reading a value
├── ConfigurationError Reserver cannot work with its settings
├── NotReady           Reserver's caches are not synced, or are stale
├── Gone               the object no longer exists
├── Taken              another client has just created a reservation of that name
├── TooMany            a caller exceeds its share
├── LoadUnknown        the load of the nodes cannot be read, so no pod is moved because of load
├── LeadershipLost     another replica may be the leader from now on
├── WentBack           the API server's data is older than before
└── ApiError           the API server answered with an error, or did not answer
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http import HTTPStatus

from reserver.printable import printable

_NOT_APPLIED = "the server rejected our request due to an error in our request"
_OTHER_UID = "metadata.uid: Invalid value"


class ReserverError(Exception):
    """Base of every error that Reserver raises on purpose."""


class InvalidInput(ReserverError):
    """A value that a user wrote is invalid.

    The message appears in events, statuses, answers and on terminals, so invisible characters of
    the value are escaped.

    Attributes:
        path: path of the value, e.g. ``resources.cpu``; empty for the whole document.
        problem: the defect, with the value quoted.
        remedy: a valid value, or the step to take.
    """

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        self.path = printable(path)
        self.problem = printable(problem)
        self.remedy = printable(remedy)
        super().__init__(self.path, self.problem, self.remedy)

    def __str__(self) -> str:
        """Return one line: path, problem, remedy."""
        path = f"{self.path}: " if self.path else ""
        return f"{path}{self.problem}; {self.remedy}"

    def under(self, parent: str) -> InvalidInput:
        """Return the same error with its path below `parent`."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return type(self)(f"{parent}{joint}{self.path}", self.problem, self.remedy)

    def detached(self) -> InvalidInput:
        """Return the same error without its traceback, to store.

        A traceback keeps the variables of all callers: among them the former version of the object
        with its own error, and so each version that was ever read.
        """
        return type(self)(self.path, self.problem, self.remedy)


class under:  # noqa: N801 - it reads like a statement
    """Prefix the path of an InvalidInput that this block raises."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        """Set the path of the part that this block reads."""
        self._path = path

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: object, exc: BaseException | None, where: object) -> None:
        """End the block.

        Raises:
            InvalidInput: the block has raised one; this exception has the full path.
        """
        if isinstance(exc, InvalidInput):
            raise exc.under(self._path) from exc


class Fault(InvalidInput):
    """A bug of Reserver prevents it from reading a value: the code raised an exception."""


class ConfigurationError(ReserverError):
    """Reserver cannot work with its settings."""


class NotReady(ReserverError):
    """Reserver's caches are not synced, or are stale, so it cannot decide."""


class Gone(ReserverError):
    """The object no longer exists; another one may have its name."""


class Taken(ReserverError):
    """Another client has just created a reservation of that name."""


class TooMany(ReserverError):
    """A caller exceeds its share."""


class LoadUnknown(ReserverError):
    """The load of the nodes cannot be read, so no pod is moved because of load."""


class LeadershipLost(ReserverError):
    """Another replica may be the leader from now on, so this one must not act."""


class WentBack(ReserverError):
    """The API server's data is older than before: etcd was restored from a backup.

    Objects seen since the time of the backup, and conclusions from them, are no longer valid, and
    no watch will report that.
    """


class ApiError(ReserverError):
    """The API server answered with an error, or did not answer.

    Attributes:
        status: the HTTP status; 0 without an answer.
        reason: reason of the Status object, for machines, e.g. ``Conflict``.
        message: message of the Status object, or of the network error.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        """Return one line for a person."""
        line = f"{self.status} {self.reason}: {self.message}" if self.status else self.message
        return printable(line)  # An admission policy may quote what a user wrote.

    @property
    def is_overtaken(self) -> bool:
        """Whether the ``test`` of a JSON patch failed: another client has changed the object.

        Admission policies, validation and immutable objects also answer 422, with other messages
        (NewGenericServerResponse in apimachinery/pkg/api/errors).
        """
        is_generic = self.message.startswith(_NOT_APPLIED)
        return self.status == HTTPStatus.UNPROCESSABLE_ENTITY and is_generic

    @property
    def is_absent(self) -> bool:
        """Whether the object does not exist, or no longer does: another one may have its name.

        A patch that names the UID of the former object is invalid for its successor
        (ValidateObjectMetaUpdate in apimachinery/pkg/api/validation).
        """
        is_another = self.status == HTTPStatus.UNPROCESSABLE_ENTITY and _OTHER_UID in self.message
        return self.status == HTTPStatus.NOT_FOUND or is_another

    @property
    def is_conflict(self) -> bool:
        """Whether the object has another version or UID than expected, or the name is taken."""
        return self.status == HTTPStatus.CONFLICT

    @property
    def is_forgotten(self) -> bool:
        """Whether the API server no longer has that resourceVersion; a new list is needed."""
        return self.status == HTTPStatus.GONE

    @property
    def is_late(self) -> bool:
        """Whether another client changed or deleted the object first, in any form of answer."""
        return self.is_overtaken or self.is_conflict or self.is_absent

    @property
    def is_away(self) -> bool:
        """Whether the API server is down or overloaded, so that the next request fails as well.

        When only a webhook is down, the API server answers 500.
        """
        busy = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
        return not self.status or self.status in busy

    @property
    def is_definite(self) -> bool:
        """Whether the request certainly had no effect, because the server refused it.

        Without an answer, after a timeout or a server error, it may have had one.
        """
        open_ended = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
        return (
            HTTPStatus.BAD_REQUEST <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR
            and self.status not in open_ended
        )


def leaves(error: Exception) -> Iterator[Exception]:
    """Yield the exceptions of a group, also of groups within; or the exception itself."""
    if isinstance(error, ExceptionGroup):
        for each in error.exceptions:
            yield from leaves(each)
    else:
        yield error


def cause(error: Exception, *kinds: type[Exception]) -> Exception:
    """Return the first exception of a group whose exceptions are all of some kinds; else the group.

    `except*` is not used: before 3.11.4 Python wraps what its block raises in another group.
    """
    found = [*leaves(error)]
    return found[0] if all(isinstance(each, kinds) for each in found) else error


class sparing:  # noqa: N801 - it reads like a statement
    """Confine an exception to the object that this block reads (docs/adr/0017).

    Exceptions that end the process or the task are raised on. It is a class because the scheduling
    of each pod enters several of these blocks: a generator would run three times as many functions.
    """

    __slots__ = ("_failed",)

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        """Call `failed` with the exception."""
        self._failed = failed

    def __enter__(self) -> object:
        """Begin the block."""
        return None

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, where: object
    ) -> bool | None:
        """End the block; return whether an exception was confined."""
        if not isinstance(exc, Exception) or isinstance(exc, MemoryError | LeadershipLost):
            return None
        self._take(exc)
        return True

    def _take(self, exc: Exception) -> None:
        self._failed(exc)
