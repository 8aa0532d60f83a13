"""Many clients create sets on a cluster that is full: never too much held, no half set.

    python -m hack.sets --calls 10000 --clients 50

It runs the embedded cluster and reserver in one process, the clients in another, and releases some
of what was created, so that there is room now and then. A third party, which shares no code with
reserver, follows the ConfigMaps and adds up what they hold after each write.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import uvloop

from reserver import app
from reserver.client import CallFailed, Client, PodOwner, Spec
from reserver.config import Settings
from reserver.kube.client import ApiClient
from reserver.sim.cluster import ClusterOptions, EmbeddedCluster

NODES = 40
CPU = 4
PARTS = 3
SYSTEM = "reserver-system"


class Auditor:
    """Adds up what ConfigMaps hold.

    Attributes:
        writes: how many states it has seen.
        wrong: what must not be.
    """

    def __init__(self) -> None:
        self.writes = 0
        self.wrong: list[str] = []
        self._data: dict[str, Mapping[str, str]] = {}
        self._whole: set[str] = set()

    def see(self, name: str, data: Mapping[str, str]) -> None:
        """Take what a ConfigMap says now."""
        self.writes += 1
        self._data[name] = data
        held: Counter[str] = Counter()
        parts: Counter[str] = Counter()
        for each in self._data.values():
            for key, text in each.items():
                spec = json.loads(text)
                held[spec["node"]] += int(spec["resources"]["cpu"])
                parts[key.rpartition("-")[0]] += 1
        over = {node: cpu for node, cpu in held.items() if cpu > CPU}
        if over:
            self.wrong.append(f"too much is held: {over}")
        for name_, count in parts.items():
            if count == PARTS:
                self._whole.add(name_)
            elif name_ not in self._whole:  # Else it is being released, part by part.
                self.wrong.append(f"half a set: {name_} has {count} of {PARTS}")


async def clients(address: str, calls: int, count: int) -> dict[str, object]:
    """Make the calls; return what came of them."""
    seconds: dict[str, list[float]] = {"created": [], "refused": []}
    codes: Counter[str] = Counter()
    numbers = iter(range(calls))
    dice = random.Random(1)  # noqa: S311 - the same each time

    async def one(client: Client) -> None:
        mine: list[list[str]] = []
        for number in numbers:
            names = [f"set{number}-{part}" for part in range(PARTS)]
            specs = {
                name: Spec(
                    owners=(PodOwner("shop", name),),
                    node=f"worker-{node}",
                    resources={"cpu": "1"},
                    ttl=timedelta(hours=1),
                )
                for name, node in zip(names, dice.sample(range(NODES), PARTS), strict=True)
            }
            began = time.perf_counter()
            try:
                await client.create_set(specs)
            except CallFailed as exc:
                codes[exc.code] += 1
                seconds["refused"].append(time.perf_counter() - began)
            else:
                codes["OK"] += 1
                seconds["created"].append(time.perf_counter() - began)
                mine.append(names)
            if mine and dice.random() < 0.1:  # noqa: PLR2004 - now and then
                for name in mine.pop(dice.randrange(len(mine))):
                    await client.release(name)

    async with Client(address, deadline_s=60) as client, asyncio.TaskGroup() as tasks:
        for _ in range(count):
            tasks.create_task(one(client))
    return {"codes": dict(codes), "seconds": seconds}


def _in_a_process(address: str, calls: int, count: int) -> dict[str, object]:
    return uvloop.run(clients(address, calls, count))


async def follow(cluster: EmbeddedCluster, auditor: Auditor) -> None:
    """Show an auditor every state of the stores, until cancelled."""
    path = f"/api/v1/namespaces/{SYSTEM}/configmaps"
    params = {"labelSelector": "reserver.io/store=true", "resourceVersion": "0"}
    async with ApiClient(_Plain(cluster.url)) as client:  # type: ignore[arg-type]  # as it is used
        async for line in client.watch(path, params, 3600):
            if line:
                found = json.loads(line)["object"]
                auditor.see(found["metadata"]["name"], found.get("data") or {})


class _Plain:
    """Credentials of nobody, in plain text."""

    tls = proxy = server_name = None

    def __init__(self, server: str) -> None:
        self.server = server

    async def authorization(self) -> None:
        return None


async def run(calls: int, count: int) -> int:
    """Run and report; return an exit status."""
    with tempfile.TemporaryDirectory() as folder:
        options = ClusterOptions(scheduler=None, history=100_000)
        async with EmbeddedCluster(options) as cluster:
            for number in range(NODES):
                await cluster.create_node(f"worker-{number}")
            body = {"metadata": {"name": SYSTEM}}
            await cluster.client.send("POST", "/api/v1/namespaces", body)
            kubeconfig = Path(folder) / "kubeconfig"
            cluster.write_kubeconfig(kubeconfig)
            settings = Settings(kubeconfig=kubeconfig, http_port=0, grpc_address=("127.0.0.1", 0))
            auditor = Auditor()
            async with app.running(settings) as reserver:
                following = asyncio.create_task(follow(cluster, auditor))
                while not reserver.watched.is_ready:  # noqa: ASYNC110 - nothing tells
                    await asyncio.sleep(0.05)
                context = multiprocessing.get_context("spawn")
                with context.Pool(1) as pool:
                    began = time.perf_counter()
                    arguments = (reserver.grpc_address, calls, count)
                    answer = pool.apply_async(_in_a_process, arguments)
                    result = await asyncio.to_thread(answer.get)
                    took = time.perf_counter() - began
                following.cancel()
    return report(result, auditor, took)


def report(result: dict[str, object], auditor: Auditor, took: float) -> int:
    """Print what came of it; return an exit status."""
    print(f"{result['codes']} in {took:.1f} s; {auditor.writes} states of the store audited")
    seconds = result["seconds"]
    for kind, values in seconds.items() if isinstance(seconds, dict) else ():
        ranked = sorted(values)
        if ranked:
            p50, p99 = (1000 * ranked[int(len(ranked) * q)] for q in (0.5, 0.99))
            print(f"{kind}: {len(ranked)}, p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    for wrong in auditor.wrong[:10]:
        print(f"WRONG: {wrong}")
    print(f"{len(auditor.wrong)} violations")
    return 1 if auditor.wrong or not auditor.writes else 0


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=50)
    arguments = parser.parse_args()
    return uvloop.run(run(arguments.calls, arguments.clients))


if __name__ == "__main__":
    sys.exit(main())
