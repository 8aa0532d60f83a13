"""Both clients: `Client` is for asyncio, `SyncClient` blocks.

A blocking call runs the coroutine of `Client` on a connection whose coroutines block instead of
suspending. So a single step completes the coroutine, without an event loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from reserver.client.capacity import Capacity
from reserver.client.connection import (
    DEADLINE_S,
    Connection,
    ConnectionTerms,
    Retrying,
    SyncConnection,
)
from reserver.client.reservations import ReservationCalls

Calls = TypeVar("Calls")
P = ParamSpec("P")
Answer = TypeVar("Answer")


class _Connecting(ABC):
    """The options of a client's connection."""

    def __init__(  # noqa: PLR0913 - options of a connection
        self,
        address: str,
        *,
        token: str | Callable[[], str] = "",
        root_certificates: bytes | None = None,
        client_certificate: tuple[bytes, bytes] | None = None,
        server_name: str = "",
        deadline_s: float = DEADLINE_S,
        connect_s: float = DEADLINE_S,
        retrying: Retrying | None = None,
    ) -> None:
        """Prepare to connect.

        Args:
            address: ``ADDRESS:PORT``, or any name that gRPC resolves.
            token: a bearer token accepted by the API server, or a function that returns the current
                one; empty if none is required. It requires TLS, except on loopback.
            root_certificates: PEM of the CAs to trust; enables TLS.
            client_certificate: PEM of key and certificate, for mutual TLS.
            server_name: the name in the server's certificate; empty for the host of the address.
            deadline_s: timeout of a call with its repetitions, in seconds.
            connect_s: timeout of a call while the server is unreachable, in seconds.
            retrying: called before a call is repeated, and before a watch is resumed.

        Raises:
            ValueError: a token without TLS.
        """
        terms = ConnectionTerms(
            address=address,
            token=token,
            root_certificates=root_certificates,
            client_certificate=client_certificate,
            server_name=server_name,
            deadline_s=deadline_s,
            connect_s=connect_s,
            retrying=retrying,
        )
        self._connect(terms)

    @abstractmethod
    def _connect(self, terms: ConnectionTerms) -> None:
        """Make the connection, which opens with the first call."""


class Client(_Connecting, ReservationCalls):
    """A client of the gRPC API, as an asynchronous context manager.

    Attributes:
        capacity: the calls about capacity.
    """

    def _connect(self, terms: ConnectionTerms) -> None:
        ReservationCalls.__init__(self, Connection(terms))

    async def __aenter__(self) -> Self:
        """Return the client; it connects with its first call."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self._connection.close()


class Blocking(Generic[Calls]):
    """The base of the blocking clients.

    Attributes:
        calls: the asynchronous calls, on a `SyncConnection`.
    """

    def __init__(self, calls: Calls) -> None:
        self.calls = calls


def done(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return the result of a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as exc:
        answer: Answer = exc.value
        return answer
    work.close()
    raise RuntimeError("a call that blocks has waited")


def _blocking(
    method: Callable[Concatenate[Calls, P], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[Blocking[Calls], P], Answer]:
    @wraps(method)
    def call(self: Blocking[Calls], /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return done(method(self.calls, *args, **kwargs))

    return call


def _iterating(
    method: Callable[Concatenate[Calls, P], AsyncGenerator[Answer, None]],
) -> Callable[Concatenate[Blocking[Calls], P], Iterator[Answer]]:
    @wraps(method)
    def iterate(self: Blocking[Calls], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Answer]:
        answers = method(self.calls, *args, **kwargs)
        try:
            while True:
                try:
                    answer = done(answers.__anext__())
                except StopAsyncIteration:
                    return
                yield answer
        finally:
            done(answers.aclose())

    return iterate


def _entering(
    method: Callable[Concatenate[Calls, P], AbstractAsyncContextManager[Answer]],
) -> Callable[Concatenate[Blocking[Calls], P], AbstractContextManager[Answer]]:
    @wraps(method)
    @contextmanager
    def enter(self: Blocking[Calls], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Answer]:
        block = method(self.calls, *args, **kwargs)
        answer = done(block.__aenter__())
        try:
            yield answer
        except BaseException as exc:
            done(block.__aexit__(type(exc), exc, exc.__traceback__))
            raise
        done(block.__aexit__(None, None, None))

    return enter


class SyncCapacity(Blocking[Capacity]):
    """The blocking form of `Capacity`, whose calls change nothing."""

    nodes = _iterating(Capacity.nodes)
    quotas = _iterating(Capacity.quotas)
    accounts = _iterating(Capacity.accounts)
    what_if = _blocking(Capacity.what_if)
    dump = _blocking(Capacity.dump)
    explain = _blocking(Capacity.explain)


class SyncClient(_Connecting, Blocking[ReservationCalls]):
    """A client of the gRPC API that blocks, as a context manager; threads may share it.

    Arguments, results and errors are the same as for `Client`. `close()` of the iterator from
    `watch` ends the watch.

    Attributes:
        capacity: the calls about capacity.
    """

    create = _blocking(ReservationCalls.create)
    create_set = _blocking(ReservationCalls.create_set)
    get = _blocking(ReservationCalls.get)
    list = _iterating(ReservationCalls.list)
    watch = _iterating(ReservationCalls.watch)
    history = _iterating(ReservationCalls.history)
    update = _blocking(ReservationCalls.update)
    extend = _blocking(ReservationCalls.extend)
    release = _blocking(ReservationCalls.release)
    hold = _entering(ReservationCalls.hold)

    def _connect(self, terms: ConnectionTerms) -> None:
        self._connection = SyncConnection(terms)
        Blocking.__init__(self, ReservationCalls(self._connection))
        self.capacity = SyncCapacity(self.calls.capacity)

    def __enter__(self) -> Self:
        """Return the client; it connects with its first call."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        done(self._connection.close())
