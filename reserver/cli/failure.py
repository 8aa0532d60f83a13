"""Errors of commands: a message on standard error, and an exit status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, NoReturn

import typer

from reserver.errors import ApiError, ConfigurationError, InvalidInput, ReserverError
from reserver.printable import printable

if TYPE_CHECKING:
    from reserver.client import CallFailed

_NO_ROOM = {"NO_ROOM", "CAN_NEVER_FIT", "QUOTA_EXCEEDED"}
_REFUSED = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}
_NO_ANSWER = {"UNAVAILABLE", "DEADLINE_EXCEEDED"}
_LONGEST = 1_000
"""So many characters of a line are printed."""

_NEAR = 0.7
"""Least similarity of a suggested word: `gpu` is not `cpu`."""

_NOT_KNOWN = (
    "; the API server does not know the credentials of this kubeconfig, which may have expired: "
    "log in again, or choose another --context"
)
_NO_RIGHT = "; ask for a role with this right, or choose another --context"
_NO_API_SERVER = "; check the server that the kubeconfig names, or choose another --context"
_EXPIRED = "; it may have expired: log in again, or pass another --token"


class ExitStatus(IntEnum):
    """Exit statuses."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    NO_ROOM = 4
    WAITING = 5


class Failed(ReserverError):
    """A command cannot do its work.

    Attributes:
        message: the problems with their remedies, a line each.
    """

    def __init__(self, status: ExitStatus, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message

    def __str__(self) -> str:
        """Return the message."""
        return self.message


class WrongUsage(Failed):
    """A command cannot do what its arguments, or files, say."""

    def __init__(self, message: str) -> None:
        super().__init__(ExitStatus.USAGE, message)


class Refused(Failed):
    """A command finds that something may not, or cannot, be done."""

    def __init__(self, message: str) -> None:
        super().__init__(ExitStatus.REFUSED, message)


def of(error: ReserverError, subject: str = "") -> Failed:
    """Return any ReserverError as the failure of a command.

    Args:
        subject: the subject of the error, such as the name of a reservation; may be empty.
    """
    if isinstance(error, Failed):
        return error
    before = f"{subject}: " if subject else ""
    if isinstance(error, InvalidInput):
        return Failed(ExitStatus.REFUSED, f"{before}{error}")
    if isinstance(error, ConfigurationError):
        return Failed(ExitStatus.USAGE, f"{before}{error}")
    if isinstance(error, ApiError):
        status = ExitStatus.REFUSED if error.status in _REFUSED else ExitStatus.UNREACHABLE
        return Failed(status, f"{before}{error}{_remedy(error)}")
    from reserver.client import CallFailed

    if isinstance(error, CallFailed):
        return _of_call(error, before)
    return Failed(ExitStatus.UNREACHABLE, f"{before}{error}")


def _remedy(error: ApiError) -> str:
    if not error.status:
        return _NO_API_SERVER
    if error.status == HTTPStatus.UNAUTHORIZED:
        return _NOT_KNOWN
    return _NO_RIGHT if lacks_right(error) else ""


def lacks_right(error: ApiError) -> bool:
    """Return whether RBAC refused it; quotas and admission refuse with the same status."""
    return error.status == HTTPStatus.FORBIDDEN and " is forbidden: User " in error.message


def _of_call(error: CallFailed, before: str) -> Failed:
    if error.reason in _NO_ROOM:
        status = ExitStatus.NO_ROOM
    elif is_without_answer(error):
        status = ExitStatus.UNREACHABLE
    else:
        status = ExitStatus.REFUSED
    lines = [f"{before}{field}: {text}" for field, text in error.fields.items()]
    remedy = _EXPIRED if error.code == "UNAUTHENTICATED" else ""
    return Failed(status, "\n".join(lines) or f"{before}{error.message or error.code}{remedy}")


def cause(error: CallFailed) -> str:
    """Return the cause of a missing answer, without gRPC's own preface."""
    last = error.message.rpartition("last error: ")[2]
    return last.rpartition("Failed to connect to remote host: ")[2]


def is_without_answer(error: ReserverError) -> bool:
    """Return whether reserver could not be reached, or cannot answer at the moment."""
    return getattr(error, "code", "") in _NO_ANSWER


class Failures(list[Failed]):
    """The failures of calls that are independent of each other."""

    @contextmanager
    def noted(self, subject: str = "") -> Iterator[None]:
        """Record the failure of a block, and go on after it, unless the server did not answer.

        Args:
            subject: the subject of the block, such as the name of a reservation; may be empty.
        """
        from reserver.client import CallFailed

        try:
            yield
        except (CallFailed, Failed, InvalidInput) as exc:
            if is_without_answer(exc):
                raise
            self.append(of(exc, subject))

    def raise_all(self) -> None:
        """Raise them as one, if there are any; its status is the highest of theirs.

        Raises:
            Failed: there are some.
        """
        if self:
            status = max(each.status for each in self)
            raise Failed(status, "\n".join(each.message for each in self))


def report(message: str) -> None:
    """Report errors on standard error, a line each; of a long text, begin and end."""
    for line in message.splitlines():
        text = printable(line)
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
        typer.echo(f"reserver: {text}", err=True)


def end(error: ReserverError) -> NoReturn:
    """Report an error and exit."""
    failed = of(error)
    report(failed.message)
    raise typer.Exit(failed.status) from error


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "", *, before: str = "") -> str:
    """Return the question whether a known word is meant; `otherwise` where none is near.

    Args:
        word: as it was typed.
        known: the words that may be meant.
        otherwise: returned where none is near.
        before: stands before the word in the question, such as its namespace.
    """
    from difflib import get_close_matches

    words = sorted(set(known) - {""})
    if word in words:
        return otherwise
    ends = [each for each in words if each.rpartition("/")[2] == word]
    near = ends or get_close_matches(word, words, 1, _NEAR)
    return f"did you mean {before}{near[0]}?" if near else otherwise
