"""What every call goes through: who makes it, may they, and what came of it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol, TypeAlias

import grpc
import structlog

from reserver.cluster.quantity import shorten
from reserver.errors import NotReady, ReserverError
from reserver.server.rpc import refusal
from reserver.server.rpc.access import Access, Call, call_of
from reserver.server.rpc.caller import caller
from reserver.server.rpc.refusal import DETAILS_KEY, Refusal

log = structlog.get_logger(__name__)

_PREFIX = "/reserver.v1."

Aio = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Counted(Protocol):
    """Where calls are counted (`server.metrics.Metrics`)."""

    def count_rpc(self, method: str, code: str, seconds: float) -> None:
        """Take note of a call."""


class Calls(grpc.aio.ServerInterceptor):
    """Lets calls through to the services of our contract, and turns our errors into theirs."""

    def __init__(
        self, access: Access | None, obstacles: Callable[[], tuple[str, ...]], counted: Counted
    ) -> None:
        """Guard calls.

        Args:
            access: who may call; None where whoever reaches us may, on loopback.
            obstacles: what keeps calls from being answered; empty if nothing.
            counted: where calls are counted.
        """
        self._access = access
        self._obstacles = obstacles
        self._counted = counted

    async def intercept_service(  # type: ignore[override]  # the types say that it may be sync
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """Return the handler of a call, guarded."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if not method.startswith(_PREFIX):
            return handler  # Health and reflection, which tell nothing of the cluster.
        if handler.unary_stream is not None:
            return grpc.unary_stream_rpc_method_handler(
                self._streaming(handler.unary_stream, call_of(method)),
                handler.request_deserializer,
                handler.response_serializer,
            )
        if handler.unary_unary is None:
            raise TypeError(f"{method} takes a stream, which is not guarded")
        return grpc.unary_unary_rpc_method_handler(
            self._single(handler.unary_unary, call_of(method)),
            handler.request_deserializer,
            handler.response_serializer,
        )

    def _single(self, behaviour: Any, call: Call) -> Any:  # noqa: ANN401 - as grpc types handlers
        async def answer(request: Any, context: Aio) -> Any:  # noqa: ANN401 - any message
            began = time.perf_counter()
            try:
                await self._admit(call, request, context)
                response = await behaviour(request, context)
            except ReserverError as exc:
                await self._refuse(call, request, context, refusal.of(exc), began)
            else:
                self._done(call, request, began)
                return response

        return answer

    def _streaming(self, behaviour: Any, call: Call) -> Any:  # noqa: ANN401 - as grpc types handlers
        async def answer(request: Any, context: Aio) -> AsyncIterator[Any]:  # noqa: ANN401
            began = time.perf_counter()
            try:
                await self._admit(call, request, context)
                async for response in behaviour(request, context):
                    yield response
            except ReserverError as exc:
                await self._refuse(call, request, context, refusal.of(exc), began)
            else:
                self._done(call, request, began)

        return answer

    async def _admit(self, call: Call, request: Any, context: Aio) -> None:  # noqa: ANN401
        if self._access is not None:
            metadata = dict(context.invocation_metadata() or ())
            caller.set("")
            user = await self._access.identify(metadata)
            caller.set(user.name)
            await self._access.require(user, call, getattr(request, "name", ""))
        if obstacles := self._obstacles():
            raise NotReady(f"reserver does not see the cluster yet: {'; '.join(obstacles)}")

    async def _refuse(
        self,
        call: Call,
        request: Any,  # noqa: ANN401
        context: Aio,
        why: Refusal,
        began: float,
    ) -> None:
        self._account(call, request, why.code.name, began, why=why.message)
        await context.abort(why.code, why.message, ((DETAILS_KEY, why.details()),))

    def _done(self, call: Call, request: Any, began: float) -> None:  # noqa: ANN401
        self._account(call, request, grpc.StatusCode.OK.name, began)

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
                what=shorten(_what(request), 200),
                code=code,
                **more,
            )


def _what(request: Any) -> str:  # noqa: ANN401 - any message
    """Return what a request is about, in a few words."""
    if name := getattr(request, "name", ""):
        return str(name)
    if pod := getattr(request, "pod_name", ""):
        return f"{request.pod_namespace}/{pod}"
    entries = getattr(request, "reservations", ())
    return ", ".join(entry.name for entry in entries[:5]) + (", …" if len(entries) > 5 else "")  # noqa: PLR2004
