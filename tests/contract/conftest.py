"""The API servers under contract: the embedded one always, a real one where there is one.

`--controlplane` starts a real one, `--kubeconfig FILE` names one.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator

import aiohttp
import pytest

from reserver_demo.apiserver.server import serve
from reserver_demo.apiserver.store import Store
from reserver_demo.clock import SystemClock
from tests.contract.api import Api, Server, pod, server_from

EMBEDDED, REAL = "embedded", "real"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        options = metafunc.config.option
        servers = [EMBEDDED, *([REAL] if options.controlplane or options.kubeconfig else [])]
        metafunc.parametrize("server", servers, indirect=True)


@pytest.fixture
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """An API server; the embedded one is new for each test."""
    if request.param == EMBEDDED:
        async with serve(Store(history_limit=100), SystemClock()) as url:
            yield Server(url, {}, None)
    else:
        yield server_from(str(request.getfixturevalue("kubeconfig")))


@pytest.fixture
async def api(server: Server) -> AsyncIterator[Api]:
    """An API server, and a namespace in it that is gone after the test."""
    async with aiohttp.ClientSession() as session:
        api = Api(server, session, f"contract-{uuid.uuid4().hex[:8]}")
        home = {"metadata": {"name": api.namespace}}
        assert (await api.post("/api/v1/namespaces", home)).status == 201
        try:
            await _until_pods_are_welcome(api)
            yield api
        finally:
            await api.delete(f"/api/v1/namespaces/{api.namespace}")


async def _until_pods_are_welcome(api: Api) -> None:
    """Wait for the service account that a real cluster gives to a namespace."""
    async with asyncio.timeout(30):
        while (await api.post(api.path("pods"), pod("probe"), dryRun="All")).status == 403:
            continue
