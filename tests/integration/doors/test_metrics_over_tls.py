"""Metrics over TLS are for users that may get them."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path

import aiohttp
import pytest
import trustme

from reserver import DISTRIBUTION, app
from reserver.errors import ConfigurationError
from reserver.k8s.reviewer import MOST_FAILURES
from reserver.settings.serve import Settings
from reserver_demo.cluster import EmbeddedCluster
from tests.integration.doors.api_server import RIGHTS, Reviewing, reviewing


class Scraped:
    def __init__(self, running: app.Running, api: Reviewing, tls: ssl.SSLContext) -> None:
        self.running, self.api, self._tls = running, api, tls

    async def get(self, path: str, token: str | None, peer: str = "127.0.0.1") -> tuple[int, str]:
        connector = aiohttp.TCPConnector(local_addr=(peer, 0))
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        url = f"{self.running.metrics_url}{path}"
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(url, headers=headers, ssl=self._tls) as answer,
        ):
            return answer.status, await answer.text()


@pytest.fixture
async def scraped(tmp_path: Path) -> AsyncIterator[Scraped]:
    own = trustme.CA()
    made = own.issue_cert("127.0.0.1")
    made.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    made.private_key_pem.write_to_path(tmp_path / "tls.key")
    context = ssl.create_default_context()
    own.configure_trust(context)
    settings = Settings(
        kubeconfig=tmp_path / "kubeconfig",
        http_port=0,
        tls_cert_file=tmp_path / "tls.crt",
        tls_private_key_file=tmp_path / "tls.key",
        health_address=("127.0.0.1", 0),
        metrics_address=("127.0.0.1", 0),
        profiling=True,
    )
    async with (
        EmbeddedCluster() as cluster,
        reviewing(cluster, tmp_path / "kubeconfig") as api,
        app.running(settings) as running,
    ):
        yield Scraped(running, api, context)


async def test_who_may_get_metrics_gets_them(scraped: Scraped) -> None:
    status, text = await scraped.get("/metrics", "prometheus")
    assert status == 200
    assert "reserver_ready" in text
    assert "tls.crt" in text, "the expiry of its certificate is among them"
    asked = [each for each in scraped.api.asked if "nonResourceAttributes" in each]
    assert asked[0]["nonResourceAttributes"] == {"verb": "get", "path": "/metrics"}
    assert (await scraped.get("/metrics", "prometheus"))[0] == 200
    assert len(asked) == 1, "a verdict is cached"
    status, text = await scraped.get("/configz", "prometheus")
    assert json.loads(text)["reserver.io"]["kind"] == "ReserverConfiguration"


@pytest.mark.parametrize(
    ("token", "status", "why"),
    [
        (None, 401, "send a bearer token"),
        ("", 401, "send a bearer token"),
        ("junk", 401, "send a bearer token"),
        ("weak", 403, "weak may not get /metrics; grant it as a nonResourceURL"),
    ],
)
async def test_nobody_else_gets_them(
    scraped: Scraped, token: str | None, status: int, why: str
) -> None:
    found, text = await scraped.get("/metrics", token)
    assert found == status
    assert why in text


async def test_invalid_tokens_of_one_peer_do_not_refuse_another(scraped: Scraped) -> None:
    for number in range(MOST_FAILURES):
        assert (await scraped.get("/metrics", f"junk-{number}", "127.0.0.2"))[0] == 401
    assert (await scraped.get("/metrics", "junk", "127.0.0.2"))[0] == 429
    assert (await scraped.get("/metrics", "prometheus"))[0] == 200


async def test_flags_and_status_are_shown_as_components_of_kubernetes_do(scraped: Scraped) -> None:
    status, flags = await scraped.get("/flagz", "prometheus")
    assert status == 200
    assert flags.startswith("\nreserver flagz\nWarning: This endpoint is not meant to be machine")
    lines = flags.splitlines()
    for line in (
        "health-address=127.0.0.1:0",
        "history-ttl=168h",
        "extender-allowed-name=system:kube-scheduler",
        "grpc-address=",
        "profiling=true",
        "log-level=info",
    ):
        assert line in lines
    status, state = await scraped.get("/statusz", "prometheus")
    assert status == 200
    assert re.search(
        r"^Started: \w{3} \w{3} \d\d [\d:]{8} UTC \d{4}\nUp: 0 hr 00 min", state, re.MULTILINE
    )
    assert f"Binary version: {version(DISTRIBUTION)}\n" in state
    served = "/bind /configz /debug /explain /filter /flagz /healthz /livez /metrics /preempt"
    assert f"Paths: {served} /readyz /statusz\n" in state
    for path in ("/flagz", "/statusz"):
        assert (await scraped.get(path, "weak"))[0] == 403


async def test_nothing_of_the_extender_and_no_health_is_served_there(scraped: Scraped) -> None:
    for path in ("/healthz", "/explain/shop/web", "/bind", "/"):
        assert (await scraped.get(path, "prometheus"))[0] == 404


async def test_the_open_port_has_no_metrics_then(scraped: Scraped) -> None:
    async with aiohttp.ClientSession(scraped.running.health_url) as session:
        inner = ("/metrics", "/configz", "/flagz", "/statusz")
        for path, status in (*((path, 404) for path in inner), ("/livez", 200)):
            async with session.get(path) as answer:
                assert answer.status == status


async def test_a_profile_shows_stacks_of_the_event_loop(scraped: Scraped) -> None:
    status, text = await scraped.get("/debug/profile?seconds=1", "prometheus")
    assert status == 200
    assert sum(int(line.rpartition(" ")[2]) for line in text.splitlines()) > 10
    assert ";" in text
    for seconds in ("0", "31", "x", "-1", "1" * 100):
        assert (await scraped.get(f"/debug/profile?seconds={seconds}", "prometheus"))[0] == 400
    assert (await scraped.get("/debug/profile", "weak"))[0] == 403


async def test_a_verdict_that_does_not_come_is_no_right(scraped: Scraped) -> None:
    scraped.api.hanging = RIGHTS
    with pytest.raises((TimeoutError, aiohttp.ClientError)):
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=0.5)) as session:
            await session.get(
                f"{scraped.running.metrics_url}/metrics",
                headers={"Authorization": "Bearer late"},
                ssl=scraped._tls,
            )
    scraped.api.answers.set()


def test_metrics_over_tls_need_a_certificate() -> None:
    with pytest.raises(ConfigurationError, match="--metrics-address: needs --tls-cert-file and"):
        Settings(metrics_address=("127.0.0.1", 0))
