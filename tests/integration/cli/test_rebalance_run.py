"""`reserver rebalance run`, once: its output for programs, and its end by Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from hack.programs import started
from reserver.k8s.client import MERGE_PATCH
from tests.integration.world import World

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - {name: RemovePodsViolatingNodeTaints, args: {}}
  plugins:
    deschedule: {enabled: [RemovePodsViolatingNodeTaints]}
"""


async def _add(world: World, name: str, **metadata: Any) -> None:
    spec = {"nodeName": "worker-1", "containers": [{"name": "main", "image": "main"}]}
    body = {"metadata": {"name": name, **metadata}, "spec": spec}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", body)


async def _run(folder: Path, *flags: str) -> tuple[int | None, str, str]:
    """Run it as a process of its own, because it configures logs for all of a process."""
    (folder / "policy.yaml").write_text(POLICY)
    command = [sys.executable, "-m", "reserver", "rebalance", "run", "--without-holds"]
    command += ["--policy-config-file", str(folder / "policy.yaml"), "-o", "json", *flags]
    access = {**os.environ, "KUBECONFIG": str(folder / "kubeconfig")}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env=access)
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_a_program_is_told_the_plan_and_what_became_of_each_move(
    world: World, tmp_path: Path
) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}
    await _add(world, "web-0", ownerReferences=[owner | {"controller": True}])
    await _add(world, "bare")
    taint = {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}}
    await world.cluster.client.send("PATCH", "/api/v1/nodes/worker-1", taint, media=MERGE_PATCH)
    dry = json.loads((await _run(tmp_path, "--dry-run"))[1])
    told = json.loads((await _run(tmp_path))[1])
    assert (dry["dryRun"], dry["moves"], dry["outcomes"]) == (True, told["moves"], [])
    assert [each["pod"] for each in told["moves"]] == ["web-0"]
    assert [each["pod"] for each in told["kept"]] == ["bare"]
    done = {"namespace": "shop", "pod": "web-0", "result": "success", "podMove": "", "why": ""}
    assert (told["dryRun"], told["left"], told["outcomes"]) == (False, 0, [done])
    status, out, err = await _run(tmp_path, "--descheduling-interval", "5m")
    assert (status, out) == (2, "")
    assert "--output: shows one round" in err


def test_ctrl_c_ends_a_round_whose_api_server_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        cluster = {
            "name": "c",
            "cluster": {"server": f"http://127.0.0.1:{silent.getsockname()[1]}"},
        }
        context = {"name": "x", "context": {"cluster": "c", "user": ""}}
        config = {"clusters": [cluster], "contexts": [context], "current-context": "x"}
        (tmp_path / "config").write_text(json.dumps(config))
        command = [sys.executable, "-m", "reserver", "rebalance", "run", "--without-holds"]
        command += ["--policy-config-file", str(tmp_path / "policy.yaml")]
        command += ["--kubeconfig", str(tmp_path / "config")]
        pipe = subprocess.PIPE
        with started(*command, stdout=pipe, stderr=pipe) as process:
            connection, _ = silent.accept()
            with connection:
                assert connection.recv(4)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err
