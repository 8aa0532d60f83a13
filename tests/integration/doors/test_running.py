"""Reserver as it is started: allowed clients of each port, with real files and a cluster."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import aiohttp
import pytest
import trustme

from reserver import app
from reserver.settings.serve import Settings
from reserver_demo.cluster import EmbeddedCluster
from tests.integration.doors.wire import call, wire


async def test_a_key_to_the_grpc_api_does_not_open_the_extender(tmp_path: Path) -> None:
    own, extender, grpc = trustme.CA(), trustme.CA(), trustme.CA()
    made = own.issue_cert("127.0.0.1")
    made.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    made.private_key_pem.write_to_path(tmp_path / "tls.key")
    extender.cert_pem.write_to_path(tmp_path / "extender.crt")
    grpc.cert_pem.write_to_path(tmp_path / "grpc.crt")

    def client(ca: trustme.CA) -> ssl.SSLContext:
        context = ssl.create_default_context()
        own.configure_trust(context)
        ca.issue_cert(common_name="system:kube-scheduler").configure_cert(context)
        return context

    async with EmbeddedCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        settings = Settings(
            kubeconfig=tmp_path / "kubeconfig",
            http_port=0,
            tls_cert_file=tmp_path / "tls.crt",
            tls_private_key_file=tmp_path / "tls.key",
            extender_client_ca_file=tmp_path / "extender.crt",
            grpc_client_ca_file=tmp_path / "grpc.crt",
            grpc_address=("127.0.0.1", 0),
            health_address=("127.0.0.1", 0),
        )
        bind = {"PodName": "p", "PodNamespace": "shop", "PodUID": "u", "Node": "worker-1"}
        async with app.running(settings) as running, aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.post(f"{running.url}/bind", json=bind, ssl=client(grpc))
            answer = await session.post(f"{running.url}/bind", json=bind, ssl=client(extender))
            assert json.loads(await answer.read())["Error"]  # It was decided: there is no such pod.
            assert running.health_url
            async with session.get(f"{running.health_url}/healthz") as health:
                assert health.status == 200


@pytest.mark.parametrize(
    "attack",
    [
        call("POST /bind HTTP/1.1", "Content-Type: text/plain", body=b"{}"),
        call("POST /bind HTTP/1.1", "Content-Type: application/json", body=b"{}", host="evil"),
        call("GET /explain/shop/web HTTP/1.1", host="evil.example:9440"),
        call("GET /healthz HTTP/1.1", "Content-Encoding: gzip", body=b"\x1f\x8b"),
    ],
    ids=["form", "other-host", "rebound", "gzip"],
)
async def test_reserver_as_it_is_started_has_its_doors_closed(
    tmp_path: Path, attack: bytes
) -> None:
    async with EmbeddedCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        settings = Settings(
            kubeconfig=tmp_path / "kubeconfig", http_port=0, health_address=("127.0.0.1", 0)
        )
        async with app.running(settings) as running:
            assert running.health_url
            for url in (running.url, running.health_url):
                async with wire(url) as client:
                    client.say(attack)
                    assert (await client.answer())[0] in {415, 421, 413}
