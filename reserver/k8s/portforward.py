"""A connection to a port of a pod through the API server, as `kubectl port-forward` makes it.

A WebSocket carries one connection: channel 0 has its data, channel 1 an error message, and each
begins with the port (cri-streaming, pkg/streaming/portforward/websocket.go). The kubernetes
package's own port-forward is synchronous, uses a thread for each connection, and supports no proxy.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from reserver.errors import ApiError, NotReady
from reserver.k8s.client import ApiClient
from reserver.k8s.serving_pod import ServingPod

_PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_PORT_BYTES = 2
_CHUNK = 64 * 1024


class Tunnel:
    """A socket whose connections end at a port of a pod, even a port on its loopback interface.

    Attributes:
        folder: folder of the socket.
        address: address of the socket for gRPC. No other user of this machine can reach it.
        target: pod and port of the last connection.
        problem: error of the last connection; empty if it succeeded.
    """

    def __init__(self, client: ApiClient, find: Callable[[], Awaitable[ServingPod]]) -> None:
        """Prepare a tunnel; `find` returns the pod for each new connection."""
        self._client = client
        self._find = find
        self._spare: aiohttp.ClientWebSocketResponse | None = None
        self.folder = self.address = ""
        self.target = ""
        self.problem = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Tunnel]:
        """Listen until the block ends.

        Raises:
            NotReady: there is no pod to connect to.
            ApiError: the API server refuses to forward to the pod.
        """
        # The first connection is made in advance, to report a refusal at once with its reason.
        self._spare = await self._dial()
        with tempfile.TemporaryDirectory(prefix="reserver-") as folder:
            self.folder, path = folder, Path(folder) / "pod"
            server = await asyncio.start_unix_server(self._carry, path)
            self.address = f"unix:{path}"
            try:
                yield self
            finally:
                server.close()
                if self._spare is not None:
                    await self._spare.close()

    async def _dial(self) -> aiohttp.ClientWebSocketResponse:
        pod = await self._find()
        namespace, name = pod.name.split("/")
        self.target = f"in pod {pod.name}, port {pod.port}"
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/portforward"
        return await self._client.web_socket(path, {"ports": str(pod.port)}, _PROTOCOL)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until either side ends it."""
        spare, self._spare = self._spare, None
        try:
            async with spare or await self._dial() as socket:
                self.problem = ""
                sending = asyncio.create_task(_send(reader, socket))
                try:
                    await self._receive(socket, writer)
                finally:
                    sending.cancel()
                    await asyncio.wait({sending})
        except (ApiError, NotReady) as exc:
            self.problem = str(exc)
        except (OSError, aiohttp.ClientError):
            pass  # The caller has disconnected, so no error can be reported.
        finally:
            writer.close()

    async def _receive(
        self, socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter
    ) -> None:
        opened = set()
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel not in opened:
                opened.add(channel)
                data = data[_PORT_BYTES:]
            if channel == _ERROR and data:
                self.problem = data.decode(errors="replace")
                return
            if channel == _DATA and data:
                writer.write(data)
                await writer.drain()


async def _send(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    prefix = bytes((_DATA,))
    with suppress(OSError, aiohttp.ClientError):  # The other side may have closed by now.
        while data := await reader.read(_CHUNK):
            await socket.send_bytes(prefix + data)
        await socket.close()
