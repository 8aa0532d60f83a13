"""The ConfigMaps that are read, by watches that do not disturb each other."""

from __future__ import annotations

from pathlib import Path

from reserver import app
from reserver.process.assembly import Assembly
from reserver.settings.serve import Settings
from reserver_demo.cluster import EmbeddedCluster
from tests.waiting import until

MERGE = "application/merge-patch+json"


def _spec(node: str) -> str:
    return f"owners: [{{pod: {{name: a}}}}]\nnode: {node}\nresources: {{cpu: 1}}\nttl: 1h\n"


async def _create(cluster: EmbeddedCluster, namespace: str, name: str, **labels: str) -> None:
    metadata = {"name": name, "labels": {f"reserver.io/{k}": v for k, v in labels.items()}}
    body = {"metadata": metadata, "data": {f"{namespace}.{name}": _spec("worker-1")}}
    await cluster.client.send("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)


def _keys(assembly: Assembly) -> set[str]:
    return {reservation.ref.key for reservation, _ in assembly.ledger}


async def _until(assembly: Assembly, keys: set[str]) -> None:
    await until(lambda: _keys(assembly) == keys and assembly.is_ready)


async def test_labelled_and_named_configmaps_are_read_and_no_others(tmp_path: Path) -> None:
    async with EmbeddedCluster() as cluster:
        await cluster.create_node("worker-1")
        for namespace in ("reserver-system", "unicore", "shop"):
            await cluster.client.send(
                "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}
            )
        await _create(cluster, "reserver-system", "labelled", store="true")
        await _create(cluster, "reserver-system", "both", store="true")
        await _create(cluster, "reserver-system", "neither")
        await _create(cluster, "unicore", "named")
        await _create(cluster, "shop", "elsewhere", store="true")
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        settings = Settings(
            kubeconfig=tmp_path / "kubeconfig",
            http_port=0,
            configmaps=(("unicore", "named"), ("reserver-system", "both")),
        )
        async with app.running(settings) as reserver:
            labelled, both = "reserver-system.labelled", "reserver-system.both"
            await _until(reserver.assembly, {labelled, both, "unicore.named"})

            unlabel = {"metadata": {"labels": None}}
            path = "/api/v1/namespaces/reserver-system/configmaps"
            await cluster.client.send("PATCH", f"{path}/both", unlabel, media=MERGE)
            await cluster.client.send("PATCH", f"{path}/labelled", unlabel, media=MERGE)
            await _until(reserver.assembly, {both, "unicore.named"})

            await cluster.client.send("DELETE", "/api/v1/namespaces/unicore/configmaps/named")
            await _until(reserver.assembly, {both})
