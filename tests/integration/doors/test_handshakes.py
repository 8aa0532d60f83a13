"""Unfinished TLS handshakes end, and never those of kube-scheduler."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

from reserver.http.message import ListenerLimits
from tests.integration.doors.mutual_tls import HEALTHZ, SCHEDULER, Pki, answer, connected, serving
from tests.integration.doors.wire import Wire
from tests.waiting import until

SOON_S = 0.05


# Handshakes.


async def test_who_does_not_finish_a_handshake_is_let_go(pki: Pki) -> None:
    limits = ListenerLimits(request_s=SOON_S)
    async with serving(pki, limits=limits) as url:
        address = urlsplit(url)
        for said in (b"", b"\x16\x03\x01\x02\x00\x01", HEALTHZ):
            opened = await asyncio.open_connection(address.hostname, address.port)
            client = Wire(*opened)
            client.say(said)
            await client.all_answers()
            client.close()
        assert (await answer(url, pki.client(cn=SCHEDULER)))[0] == 200


async def test_unfinished_handshakes_push_out_each_other_and_not_kube_scheduler(pki: Pki) -> None:
    limits = ListenerLimits(new=8, new_per_peer=4)
    async with serving(pki, limits=limits) as url, AsyncExitStack() as stack:
        kept = await stack.enter_async_context(connected(url, pki.client(cn=SCHEDULER)))
        kept.say(HEALTHZ)
        assert (await kept.answer())[0] == 200
        address = urlsplit(url)
        silent = []
        for number in range(40):
            opened = await asyncio.open_connection(
                address.hostname, address.port, local_addr=(f"127.0.0.{2 + number % 4}", 0)
            )
            silent.append(Wire(*opened))
            stack.callback(silent[-1].close)
        ended = [asyncio.create_task(client.all_answers()) for client in silent]
        await until(lambda: sum(task.done() for task in ended) == len(silent) - limits.new)
        assert (await answer(url, pki.client(cn=SCHEDULER)))[0] == 200
        kept.say(HEALTHZ)
        assert (await kept.answer())[0] == 200
        for task in ended:
            task.cancel()
