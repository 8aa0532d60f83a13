"""The interceptor of all gRPC calls: authentication, authorization, bounds and outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

import grpc
import structlog
from google.protobuf.message import DecodeError

from reserver.base.pacer import Pacer, present_consumer
from reserver.base.quarantine import take_note
from reserver.cluster.quantity import shorten
from reserver.errors import NotReady, ReserverError
from reserver.extender.metrics import Metrics
from reserver.grpc import status_errors
from reserver.grpc.access import Call, CallAccess, call_of, while_lasting
from reserver.grpc.concurrency import CallCounts, caller, party_of, peer_of
from reserver.grpc.status_errors import DETAILS_KEY, CallError
from reserver.k8s.objects.limits import SET_BYTES
from reserver.k8s.objects.reviews import User

PATIENCE_S = 10.0
"""Timeout for the message of a call, and for a whole reflection call, in seconds."""

_POD_BYTES = 4 * 2**20
_BYTES = SET_BYTES + SET_BYTES // 4
_POD_METHODS = "SchedulerService/"

Decode = Callable[[bytes], Any]


def most_bytes(method: str) -> int:
    """Return the bound on a message of a method, ``Service/Method``, in bytes.

    Decoding a megabyte of small fields takes about thirty milliseconds. Only pods may be larger. A
    set has names in addition to the bounded specs.
    """
    return _POD_BYTES if method.startswith(_POD_METHODS) else _BYTES


async def receive(requests: AsyncIterator[bytes], decode: Decode, most: int) -> Any:  # noqa: ANN401
    """Return the only message of a call, of at most `most` bytes.

    Raises:
        CallError: the message does not come in time, is too long or cannot be decoded.
    """
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    packed = await _first(requests)
    if packed is None:
        raise CallError(invalid, "NO_MESSAGE", "the call has no message")
    if len(packed) > most:
        problem = f"the message has {len(packed)} bytes; send {most} at most"
        raise CallError(invalid, "MESSAGE_TOO_LONG", problem)
    try:
        return decode(packed)
    except DecodeError as exc:
        problem = "the message is not of this method; see docs/grpc-reference.md"
        raise CallError(invalid, "MALFORMED", problem) from exc


async def _first(requests: AsyncIterator[bytes]) -> bytes | None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            async for packed in requests:
                return packed
    except TimeoutError as exc:
        problem = f"no message came within {PATIENCE_S:.0f} seconds"
        raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, "NO_MESSAGE", problem) from exc
    return None


log = structlog.get_logger(__name__)

_PREFIX = "/reserver.v1."
_STRANGERS_BYTES = 4_096

Aio = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Calls(grpc.aio.ServerInterceptor):
    """Passes allowed calls to the services, and turns ReserverErrors into gRPC errors.

    Every call is handled as a client stream, which it is on the wire: so the caller is
    authenticated before a message is read, and the message has a timeout.
    """

    def __init__(
        self,
        access: CallAccess | None,
        obstacles: Callable[[], tuple[str, ...]],
        counted: Metrics,
    ) -> None:
        """Guard calls; `access` None allows every caller, for a loopback port."""
        self._access = access
        self._obstacles = obstacles
        self._counted = counted
        self._shares = CallCounts()

    async def intercept_service(  # type: ignore[override]  # the types say that it may be sync
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the guarded handler of a call; None if the method is unknown."""
        handler: Any = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None:
            return None
        if not method.startswith(_PREFIX):
            return self._for_anonymous(handler)
        call, decode = call_of(method), handler.request_deserializer
        # Without a deserializer gRPC passes the serialized message.
        codec = None, handler.response_serializer
        if handler.unary_stream is not None:
            streaming = self._streaming(handler.unary_stream, call, decode)
            return grpc.stream_stream_rpc_method_handler(streaming, *codec)
        if handler.unary_unary is None:
            raise TypeError(f"{method} takes a stream, which is not guarded")
        single = self._single(handler.unary_unary, call, decode)
        return grpc.stream_unary_rpc_method_handler(single, *codec)

    def _for_anonymous(self, handler: Any) -> Handler:  # noqa: ANN401 - as grpc types handlers
        """Return the handler of health or reflection, which show no data of the cluster."""
        decode, encode = handler.request_deserializer, handler.response_serializer

        async def answer(requests: Any, context: Aio) -> Any:  # noqa: ANN401 - any message
            is_lasting = not (handler.unary_unary or handler.stream_unary)
            share = self._shares.lasting if is_lasting else self._shares.anonymous
            try:
                with share.of(peer_of(context.peer())):
                    if handler.stream_stream is not None:
                        async with asyncio.timeout(PATIENCE_S):
                            async for response in handler.stream_stream(requests, context):
                                await context.write(response)
                        return None
                    request = await receive(requests, decode, _STRANGERS_BYTES)
                    # Health.Watch writes its responses itself.
                    behaviour = handler.unary_unary or handler.unary_stream
                    return await behaviour(request, context)
            except TimeoutError:
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the call took too long")
            except ReserverError as exc:
                why = status_errors.of(exc)
                await context.abort(why.code, why.message, ((DETAILS_KEY, why.details()),))

        if handler.stream_stream is not None:
            return grpc.stream_stream_rpc_method_handler(answer, decode, encode)
        if handler.unary_unary is not None:
            return grpc.stream_unary_rpc_method_handler(answer, None, encode)
        return grpc.stream_stream_rpc_method_handler(answer, None, encode)

    def _single(self, behaviour: Any, call: Call, decode: Decode) -> Any:  # noqa: ANN401
        async def answer(requests: Any, context: Aio) -> Any:  # noqa: ANN401 - any message
            async with self._let_in(call, requests, context, decode) as request:
                return await behaviour(request, context)

        return answer

    def _streaming(self, behaviour: Any, call: Call, decode: Decode) -> Any:  # noqa: ANN401
        async def answer(requests: Any, context: Aio) -> AsyncIterator[Any]:  # noqa: ANN401
            async with self._let_in(call, requests, context, decode) as request:
                responses = behaviour(request, context)
                if self._access is not None:
                    metadata = dict(context.invocation_metadata() or ())
                    target = self._access.target(call, request)
                    lasting = self._access.last(call, metadata, peer_of(context.peer()), target)
                    responses = while_lasting(lasting, responses)
                async for response in responses:
                    yield response

        return answer

    @asynccontextmanager
    async def _let_in(
        self,
        call: Call,
        requests: Any,  # noqa: ANN401 - a stream of one message
        context: Aio,
        decode: Decode,
    ) -> AsyncIterator[Any]:
        """Yield the request of an allowed call; report its outcome to the caller and in metrics."""
        began, request = time.perf_counter(), None
        try:
            async with AsyncExitStack() as stack:
                user = await self._identify(call, context, stack)
                request = await receive(requests, decode, most_bytes(call.method))
                await self._admit(user, call, request)
                yield request
        except ReserverError as exc:
            await self._refuse(call, request, context, status_errors.of(exc), began)
        except grpc.aio.AbortError:
            raise  # Answered already.
        except Exception as exc:  # noqa: BLE001 - reported to the caller
            await self._refuse(call, request, context, _fault(call, exc), began)
        else:
            self._account(call, request, grpc.StatusCode.OK.name, began)

    async def _identify(self, call: Call, context: Aio, open_: AsyncExitStack) -> User | None:
        """Return the user of a call, None without authentication; count the call as open."""
        caller.set("")
        peer = peer_of(context.peer())
        open_.enter_context(self._shares.peers.of(peer))
        user = None
        if self._access is not None:
            user = await self._access.identify(dict(context.invocation_metadata() or ()), peer)
            caller.set(user.name)
            present_consumer.set(party_of(user.name))
            open_.enter_context(self._shares.users.of(user.name))
        if call.verb == "watch":
            open_.enter_context(self._shares.watches.of(user.name if user else peer))
        return user

    async def _admit(self, user: User | None, call: Call, request: Any) -> None:  # noqa: ANN401
        if self._access is not None and user is not None:
            await self._access.require(user, call, self._access.target(call, request))
        if not call.method.startswith(_POD_METHODS):
            # Calls that waited for the same review would all be answered in one iteration.
            await Pacer(turn_s=0.0).give_way()
        if call.needs_readiness and (obstacles := self._obstacles()):
            raise NotReady(f"reserver does not see the cluster yet: {'; '.join(obstacles)}")

    async def _refuse(
        self,
        call: Call,
        request: Any,  # noqa: ANN401
        context: Aio,
        why: CallError,
        began: float,
    ) -> None:
        self._account(call, request, why.code.name, began, why=why.message)
        await context.abort(why.code, why.message, ((DETAILS_KEY, why.details()),))

    def _account(
        self,
        call: Call,
        request: Any,  # noqa: ANN401
        code: str,
        began: float,
        **more: str,
    ) -> None:
        self._counted.count_rpc(call.method, code, time.perf_counter() - began)
        if call.writes or code in {"UNAUTHENTICATED", "PERMISSION_DENIED"}:
            log.info(
                "audit",
                who=caller.get(),
                call=call.method,
                what=shorten(_subject(request), 200),
                code=code,
                **more,
            )


def _fault(call: Call, exc: Exception) -> CallError:
    """Log an exception; return the error to answer its call with."""
    if isinstance(exc, MemoryError):
        raise exc
    fault = take_note("call", call.method, exc)
    return CallError(grpc.StatusCode.INTERNAL, "FAULT", str(fault))


def _subject(request: Any) -> str:  # noqa: ANN401 - any message
    """Return the subject of a request in a few words, for the audit log."""
    home = f"{namespace}/" if (namespace := getattr(request, "namespace", "")) else ""
    if name := getattr(request, "name", ""):
        return f"{home}{name}"
    if pod := getattr(request, "pod_name", ""):
        return f"{request.pod_namespace}/{pod}"
    entries = getattr(request, "reservations", ())
    names = ", ".join(entry.name for entry in entries[:5])
    return f"{home}{names}{', …' if len(entries) > 5 else ''}"  # noqa: PLR2004
