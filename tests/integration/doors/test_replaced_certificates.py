"""Connections and sessions end once their client certificate is not accepted any more."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import pytest

from tests.integration.doors.mutual_tls import HEALTHZ, SCHEDULER, Pki, answer, connected, serving

# Revocation.


def _session(
    url: str, tls: ssl.SSLContext, former: ssl.SSLSession | None
) -> tuple[bytes, bool, ssl.SSLSession | None]:
    """Call over a connection of its own; return the answer, if it was resumed, and the session."""
    address = urlsplit(url)
    with (
        socket.create_connection((address.hostname or "", address.port or 0), 20) as plain,
        tls.wrap_socket(plain, server_hostname="127.0.0.1", session=former) as wrapped,
    ):
        try:
            wrapped.sendall(HEALTHZ)
            got = wrapped.recv(2**16)
        except OSError:  # In TLS 1.3 a client learns only now that it is refused.
            got = b""
        return got, bool(wrapped.session_reused), wrapped.session


async def test_a_session_is_never_resumed(pki: Pki) -> None:
    tls = pki.client(cn=SCHEDULER)
    async with serving(pki) as url:
        first, _, session = await asyncio.to_thread(_session, url, tls, None)
        assert first.startswith(b"HTTP/1.1 200 ")
        assert session is None or not session.has_ticket
        again, is_resumed, _ = await asyncio.to_thread(_session, url, tls, session)
        assert again.startswith(b"HTTP/1.1 200 ")
        assert not is_resumed


async def test_a_session_of_a_client_whose_ca_was_replaced_is_not_resumed(pki: Pki) -> None:
    tls = pki.client(cn=SCHEDULER)
    async with serving(pki) as url:
        _, _, session = await asyncio.to_thread(_session, url, tls, None)
        pki.trust(pki.other)
        assert (await asyncio.to_thread(_session, url, tls, session))[0] == b""
        assert (await answer(url, pki.client(cn=SCHEDULER, ca=pki.other)))[0] == 200


async def test_tls_whose_sessions_can_be_resumed_without_a_ticket_is_not_spoken(pki: Pki) -> None:
    tls = pki.client(cn=SCHEDULER)
    tls.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serving(pki) as url:
        assert (await answer(url, tls))[0] == 0


@pytest.mark.parametrize("what", ["ca", "certificate"])
async def test_a_connection_that_former_files_let_in_is_served_no_more(pki: Pki, what: str) -> None:
    tls = pki.client(cn=SCHEDULER)
    async with serving(pki) as url, AsyncExitStack() as stack:
        caller, idle = [await stack.enter_async_context(connected(url, tls)) for _ in range(2)]
        for client in (caller, idle):
            client.say(HEALTHZ)
            assert (await client.answer())[0] == 200
        pki.trust(pki.other) if what == "ca" else pki.issue()
        caller.say(HEALTHZ)
        status, text = await caller.answer()
        assert status == 403
        assert "reconnect" in text
        assert await caller.all_answers() == b""
        assert await idle.all_answers() == b""


async def test_a_new_connection_ends_those_that_former_files_let_in(pki: Pki) -> None:
    async with serving(pki) as url, connected(url, pki.client(cn=SCHEDULER)) as kept:
        kept.say(HEALTHZ)
        assert (await kept.answer())[0] == 200
        pki.trust(pki.other)
        assert (await answer(url, pki.client(cn=SCHEDULER, ca=pki.other)))[0] == 200
        assert await kept.all_answers() == b""


async def test_a_handshake_from_before_is_worth_nothing_after(pki: Pki) -> None:
    async with serving(pki) as url, connected(url, pki.client(cn=SCHEDULER)) as client:
        pki.trust(pki.other)
        client.say(HEALTHZ)
        assert (await client.answer())[0] == 403


async def test_a_ca_that_is_added_lets_in_new_clients_and_the_old_ones_again(pki: Pki) -> None:
    async with serving(pki) as url:
        pki.trust(pki.clients, pki.other)
        for ca in (pki.clients, pki.other):
            assert (await answer(url, pki.client(cn=SCHEDULER, ca=ca)))[0] == 200
