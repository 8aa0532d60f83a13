"""Calls of unknown callers, and calls that are not valid."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from reserver.base.pacer import present_consumer
from reserver.grpc import interceptor, service
from reserver.k8s.objects.reviews import User
from tests.unit.grpc.doors.served import GET, ROOT, channel, served
from tests.unit.grpc.test_access import Reviewer, bearer, code_of


async def silence() -> AsyncIterator[bytes]:
    """Never send the message of a call."""
    await asyncio.Event().wait()
    yield b""


async def test_a_message_that_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interceptor, "PATIENCE_S", 0.05)
    async with served(Reviewer()) as address, channel(address) as slow:
        call = slow.stream_unary(GET)(silence(), metadata=ROOT)
        assert await code_of(call) is grpc.StatusCode.DEADLINE_EXCEEDED
        check = slow.stream_unary("/grpc.health.v1.Health/Check")(silence())
        assert await code_of(check) is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_call_works_for_the_namespace_of_its_service_account() -> None:
    seen = list[str]()

    class Accounts(Reviewer):
        async def authenticate(self, token: str, peer: str) -> User | None:  # noqa: ARG002
            return User(f"system:serviceaccount:shop:{token}", "u-2", ())

        async def may(self, *_: object) -> bool:
            seen.append(present_consumer.get())
            return False

    async with served(Accounts()) as address, channel(address) as open_channel:
        for token in ("a", "b"):
            call = open_channel.unary_unary(GET)(b"", metadata=bearer(token))
            assert await code_of(call) is grpc.StatusCode.PERMISSION_DENIED
    assert seen == ["system:serviceaccount:shop"] * 2


async def test_who_nobody_knows_is_refused_before_a_message_is_read() -> None:
    async with served(Reviewer()) as address, channel(address) as slow:
        call = slow.stream_unary(GET)(silence(), metadata=bearer("junk"))
        assert await code_of(call) is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("message", [b"\xff\xff\xff", b"\x0a\xff"])
async def test_what_is_no_message_is_told_so(message: bytes) -> None:
    async with served(Reviewer()) as address, channel(address) as made:
        call = made.unary_unary(GET)(message, metadata=ROOT)
        assert await code_of(call) is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_method_that_there_is_not_is_told_so() -> None:
    async with served(Reviewer()) as address, channel(address) as made:
        call = made.unary_unary("/reserver.v1.ReservationService/Drain")(b"", metadata=ROOT)
        assert await code_of(call) is grpc.StatusCode.UNIMPLEMENTED


async def test_health_says_at_each_moment_what_readiness_is() -> None:
    obstacles: list[str] = []
    status = health_pb2.HealthCheckResponse
    ready = served(Reviewer(), obstacles=lambda: tuple(obstacles))
    async with ready as address, channel(address) as made:
        stub = health_pb2_grpc.HealthStub(made)
        watch = stub.Watch(health_pb2.HealthCheckRequest())
        for each in ("", *service.SERVICES):
            for expected in (status.SERVING, status.NOT_SERVING):
                obstacles[:] = ["no lease"] if expected == status.NOT_SERVING else []
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=each))
                assert answer.status == expected
        while (await watch.read()).status != status.NOT_SERVING:
            pass  # The watch shows the change as well.


async def test_reflection_is_open_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(Reviewer()) as address, channel(address) as made:
        stub = reflection_pb2_grpc.ServerReflectionStub(made)
        wanted = reflection_pb2.ServerReflectionRequest(list_services="")
        answers = [each async for each in stub.ServerReflectionInfo(iter([wanted]))]
        assert len(answers[0].list_services_response.service) > 3
        monkeypatch.setattr(interceptor, "PATIENCE_S", 0.05)
        call = stub.ServerReflectionInfo(silence())
        assert await code_of(call.read()) is grpc.StatusCode.DEADLINE_EXCEEDED
