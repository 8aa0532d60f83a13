"""The tenant: writes one costly object after the other, in its own process, until it is ended.

    python -m hack.hostile.tenant KUBECONFIG NAMESPACE JOURNAL --nodes 1000 --node-name 'w-{}'

Its rights are those of its kubeconfig. JOURNAL has its writes, with the API server's answers.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import grpc
import urllib3
from google.protobuf import json_format

from hack.bed.api import Api, ApiFault
from hack.hostile.catalogue import CATALOGUE
from hack.hostile.costly.entry import (
    CONFIGMAP,
    MOVE,
    PATCH,
    POD,
    REQUEST,
    RESERVATION,
    REVIEW,
    TEMPLATE,
    WHAT_IF,
    Costly,
    Document,
    Target,
)
from hack.hostile.world import TENANT
from hack.programs import started
from reserver.v1 import capacity_pb2, capacity_pb2_grpc

PATHS = {
    RESERVATION: "/apis/reserver.io/v1alpha1/namespaces/{}/reservations",
    POD: "/api/v1/namespaces/{}/pods",
    TEMPLATE: "/api/v1/namespaces/{}/podtemplates",
    PATCH: "/apis/reserver.io/v1alpha1/namespaces/{}/schedpatches",
    MOVE: "/apis/reserver.io/v1alpha1/namespaces/{}/podmoves",
    REQUEST: "/apis/autoscaling.x-k8s.io/v1/namespaces/{}/provisioningrequests",
    CONFIGMAP: "/api/v1/namespaces/{}/configmaps",
}
_ANEW = frozenset({POD, REQUEST, MOVE})
"""Kinds that cannot be edited."""

_KINDS = {RESERVATION: "Reservation", PATCH: "SchedPatch", MOVE: "PodMove"}

_SAID = frozenset({"spec", "data", "template"})

_RENEWED = 5
"""One in this many writes deletes and creates the object instead of editing it."""

_SHARES = (1.0, 1.0, 0.5, 1.0, 0.2, 1.0, 0.05)
"""Shares of the largest size that the API server accepts, by turn; Reserver has bounds, too."""

_SMALLER = 0.6
_TOO_LARGE = frozenset({HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, 500})

JOURNAL = "tenant.jsonl"

_CALL_S = 20.0
_JSON = {"Content-Type": "application/json"}
_LARGEST_CALL = 64 << 20


@contextmanager
def at_work(kubeconfig: Path, folder: Path, **options: object) -> Iterator[None]:
    """Run the tenant until the block ends; its journal and its log are in a folder.

    Args:
        kubeconfig: kubeconfig of the tenant.
        folder: folder for `JOURNAL` and `tenant.log`.
        options: options of this module's command line, with underscores.

    Raises:
        RuntimeError: it has ended by itself.
    """
    command: list[str | Path] = [sys.executable, "-m", "hack.hostile.tenant"]
    command += [kubeconfig, TENANT, folder / JOURNAL]
    command += [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    with (
        (folder / "tenant.log").open("wb") as log,
        started(*map(str, command), grace_s=30, stdout=log, stderr=log) as process,
    ):
        yield
        if process.poll() is not None:
            raise RuntimeError(f"the tenant has ended by itself: {log.name}")


class Tenant:
    """The hostile tenant.

    Args:
        api: client with its own rights.
        namespace: its namespace.
        grpc_address: gRPC address of Reserver; empty for none.
        webhook_url: URL of Reserver's webhooks; empty for none.
    """

    def __init__(
        self, api: Api, namespace: str, grpc_address: str = "", webhook_url: str = ""
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._grpc_address = grpc_address
        self._webhook_url = webhook_url
        # Unlike the API server, the tenant trusts any certificate.
        self._pool = urllib3.PoolManager(
            cert_reqs="NONE", retries=False, timeout=_CALL_S, headers=_JSON
        )

    def write(self, costly: Costly, turn: int) -> tuple[int, int]:
        """Write an object over the existing one; return status and bytes sent."""
        if costly.kind == WHAT_IF:
            return self._ask(costly.document)
        if costly.kind == REVIEW:
            return self._have_reviewed(costly.document, turn)
        collection = PATHS[costly.kind].format(self._namespace)
        whole = body(costly)
        try:
            if costly.kind in _ANEW or turn % _RENEWED == 0:
                self._api.delete(f"{collection}/{costly.name}", 0)
            elif self._edit(f"{collection}/{costly.name}", whole):
                return HTTPStatus.OK, len(json.dumps(whole))
            self._api.create(collection, whole)
        except ApiFault as fault:
            return fault.status, len(json.dumps(whole))
        return HTTPStatus.CREATED, len(json.dumps(whole))

    def _edit(self, path: str, whole: Document) -> bool:
        """Edit an existing object; return False without one."""
        try:
            self._api.patch(path, {key: whole[key] for key in whole.keys() & _SAID})
        except ApiFault as fault:
            if fault.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def _ask(self, question: Document) -> tuple[int, int]:
        if not self._grpc_address:
            return 0, 0
        message = json_format.ParseDict(question, capacity_pb2.WhatIfRequest())
        return asyncio.run(_call(self._grpc_address, message)), message.ByteSize()

    def _have_reviewed(self, pods: Document, turn: int) -> tuple[int, int]:
        """Send reviews that only API servers should send; return the last status, and bytes."""
        status = size = 0
        for path, pod in pods.items() if self._webhook_url else ():
            asked = {"uid": "u", "namespace": self._namespace, "object": pod, "dryRun": True}
            sent = json.dumps({"request": {**asked, "name": f"p{turn}"}}).encode()
            try:
                response = self._pool.request("POST", self._webhook_url + path, body=sent)
            except urllib3.exceptions.HTTPError:
                return 0, len(sent)
            status, size = response.status, size + len(sent)
        return status, size


async def _call(address: str, message: capacity_pb2.WhatIfRequest) -> int:
    """Return the gRPC status number of a call."""
    options = [("grpc.max_send_message_length", _LARGEST_CALL)]
    async with grpc.aio.insecure_channel(address, options) as channel:
        stub = capacity_pb2_grpc.CapacityServiceStub(channel)
        try:
            await stub.WhatIf(message, timeout=_CALL_S)
        except grpc.aio.AioRpcError as error:
            return int(error.code().value[0])
    return 0


def body(costly: Costly) -> Document:
    """Return the object in the form of the API server."""
    if costly.kind in _KINDS:
        kind = {"apiVersion": "reserver.io/v1alpha1", "kind": _KINDS[costly.kind]}
        return kind | {"metadata": {"name": costly.name}, "spec": costly.document}
    if costly.kind == REQUEST:
        kind = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest"}
        return kind | {"metadata": {"name": costly.name}, "spec": costly.document}
    if costly.kind == TEMPLATE:
        return {"metadata": {"name": costly.name}, "template": costly.document}
    if costly.kind == CONFIGMAP:
        return {"metadata": {"name": costly.name}, "data": costly.document}
    metadata = {**costly.document["metadata"], "name": costly.name}
    return {**costly.document, "metadata": metadata}


def turns(names: list[str], seed: int) -> Iterator[tuple[str, int]]:
    """Yield the next entry and its number of earlier writes: each entry once a turn, shuffled."""
    rng, turn = random.Random(seed), 0  # noqa: S311
    while True:
        for name in rng.sample(names, len(names)):
            yield name, turn
        turn += 1


def main() -> None:
    """The command line."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    nodes = [options.node_name.format(number) for number in range(1, options.nodes + 1)]
    labels = dict(label.split("=", 1) for label in options.label)
    target = Target(nodes, options.scheduler, labels)
    with (
        contextlib.suppress(KeyboardInterrupt),
        closing(Api(options.kubeconfig)) as api,
        options.journal.open("w", buffering=1) as journal,
    ):
        tenant = Tenant(api, options.namespace, options.grpc_address, options.webhook_url)
        largest = dict.fromkeys(CATALOGUE, 1.0)
        for name, turn in turns(options.only.split(","), options.seed):
            share = largest[name] * _SHARES[turn % len(_SHARES)]
            costly = CATALOGUE[name](replace(target, share=share), turn)
            began = time.time()
            status, size = tenant.write(costly, turn)
            if status in _TOO_LARGE and share == largest[name]:
                largest[name] *= _SMALLER
            line = {"at": began, "until": time.time(), "what": name, "turn": turn, "share": share}
            journal.write(json.dumps({**line, "status": status, "bytes": size}) + "\n")
            pause = max(1 / options.rate, size / options.bytes)
            time.sleep(max(0.0, began + pause - time.time()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("namespace")
    parser.add_argument("journal", type=Path)
    parser.add_argument("--nodes", type=int, required=True, help="how many there are")
    parser.add_argument("--node-name", required=True, help="with {} for the number")
    parser.add_argument("--scheduler", default="reserver-scheduler", help="of pods that wait")
    parser.add_argument("--label", action="append", default=[], help="KEY=VALUE, of these nodes")
    parser.add_argument("--grpc-address", default="", help="of Reserver")
    parser.add_argument("--webhook-url", default="", help="of Reserver's webhooks")
    parser.add_argument("--rate", type=float, default=5.0, help="writes a second, at most")
    parser.add_argument("--bytes", type=float, default=1_000_000, help="a second, at most")
    parser.add_argument("--only", default=",".join(CATALOGUE), help="(default: all of them)")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
