"""`reserver serve` rebalances in a process of its own, which knows what is held."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.controlplane.kubeconfig import service_account_kubeconfig
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.crowding import Shop, crowd
from tests.e2e.conftest import MOVES, RBAC, ROOT, grant
from tests.e2e.forms import FORMS

pytestmark = pytest.mark.controlplane

WITHIN = "rebalancing-within"

WITHIN_RBAC = ROOT / "scheduler-config/components/rebalance/rbac.yaml"


@pytest.fixture(scope="session")
def within_kubeconfig(kubeconfig: Path, api: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An account with the rights of `reserver serve` and of rebalancing within it."""
    path = tmp_path_factory.mktemp("within") / "kubeconfig"
    return _account(api, kubeconfig, WITHIN, path, WITHIN_RBAC)


@pytest.fixture(scope="session")
def room_kubeconfig(kubeconfig: Path, api: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As that, with the rights to move pods as well."""
    path = tmp_path_factory.mktemp("room") / "kubeconfig"
    return _account(api, kubeconfig, "room-within", path, WITHIN_RBAC, MOVES / "rbac.yaml")


def _account(api: Any, kubeconfig: Path, name: str, path: Path, *components: Path) -> Path:
    grant(api, {"apiVersion": "v1", "kind": "ServiceAccount", **_named(name)})
    for file in (RBAC, *components):
        for document in yaml.safe_load_all(file.read_text()):
            if document["kind"] == "ServiceAccount":
                continue
            document["metadata"]["name"] = f"{name}-{document['metadata']['name']}"
            if "roleRef" in document:
                document["roleRef"]["name"] = f"{name}-{document['roleRef']['name']}"
                document["subjects"][0]["name"] = name
            grant(api, document)
    service_account_kubeconfig(kubeconfig, "reserver-system", name, path)
    return path


def _named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "reserver-system"}}


def _children(process: ReserverProcess) -> list[int]:
    number = process.process.pid
    return list(map(int, Path(f"/proc/{number}/task/{number}/children").read_text().split()))


def test_serve_rebalances_in_a_process_that_knows_what_is_held_and_ends_with_it(
    shop: Shop, within_kubeconfig: Path, tmp_path: Path
) -> None:
    crowd(shop)
    shop.corner.reserve(FORMS[0], shop.nodes[2], "someone", cpu="4")
    shop.corner.wait_held(shop.nodes[2])
    policy = tmp_path / "within.yaml"
    shop.write(policy, RemoveDuplicates={})
    flags = [f"--rebalance-policy={policy}", "--rebalance-interval=1s"]
    with ReserverProcess(within_kubeconfig, tmp_path / "log", *flags) as process:

        def is_spread() -> bool:
            return sorted(shop.count("web").values()) == [2, 4]

        wait_for(is_spread, "pods went where nothing is held")
        assert shop.nodes[2] not in shop.count("web")
        evicted = 'result="success",strategy="RemoveDuplicates"} 2.0'
        wait_for(lambda: evicted in process.get("/metrics")[1], "its metrics are ours")
        (child,) = _children(process)
        os.kill(child, signal.SIGKILL)
        wait_for(lambda: _children(process) not in ([], [child]), "another one has taken its place")
        assert process.metric("reserver_rebalance_process_ended_total") == 1
        (child,) = _children(process)
        process.kill()
        wait_for(lambda: not Path(f"/proc/{child}").exists(), "it has ended as well")
        process.start()
        wait_for(lambda: len(_children(process)) == 1, "it runs again")
        (child,) = _children(process)
    assert not Path(f"/proc/{child}").exists()


def test_serve_would_make_room_for_a_pod_that_fits_nowhere(
    shop: Shop, room_kubeconfig: Path, tmp_path: Path
) -> None:
    """A dry run: another Reserver carries PodMoves out here, and would take them as its own."""
    crowd(shop)
    first, second, third = shop.nodes
    for node in (first, third):
        shop.cordon(node)
    shop.deploy("api", 2)
    assert shop.count("api") == {second: 2}
    shop.corner.create_pod("big", {"cpu": "4"})
    shop.corner.wait_refused("big")
    shop.cordon(first, is_cordoned=False)
    before = shop.pods()
    flags = ["--rebalance-make-room", "--rebalance-mode=reserve-first", "--pod-moves"]
    flags += ["--rebalance-dry-run", "--rebalance-interval=1s"]
    with ReserverProcess(room_kubeconfig, tmp_path / "log", *flags):

        def would() -> set[tuple[str, str, str]]:
            """Return pod, node and target of all that would move for room."""
            lines = (tmp_path / "log").read_text().splitlines()  # The last one may be written now.
            whole = [json.loads(line) for line in lines if line[:1] + line[-1:] == "{}"]
            found = [line for line in whole if line.get("strategy") == "MakeRoom"]
            return {(line["pod"], line["node"], line["to"]) for line in found}

        wait_for(lambda: len(would()) == 3, "a round has made room")
        here = shop.corner.name
        assert (f"{here}/big", "", second) in would()
        assert Counter(each[1:] for each in would()) == {("", second): 1, (second, first): 2}
    assert shop.pods() == before
