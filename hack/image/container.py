"""A container of a pod, run as a kubelet has it run: by an OCI runtime, from the pod's own spec."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from hack.image.build import Image
from reserver.cluster import quantity

_GRACE_S = 30.0
_MOUNTS = (
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
)


class Container:
    """A container, as a context manager. It has the network of the machine, and no other room.

    Attributes:
        log: file that its output is written to.
    """

    def __init__(
        self,
        image: Image,
        pod: Mapping[str, Any],
        container: Mapping[str, Any],
        folder: Path,
        *,
        env: Mapping[str, str],
        mounts: Mapping[str, Path],
    ) -> None:
        """Prepare a container in a folder of its own.

        Args:
            image: the image of the container.
            pod: the spec of its pod.
            container: its spec.
            folder: the folder of its configuration and its log.
            env: variables that the kubelet adds to its environment.
            mounts: read-only mounts, by path in the container.
        """
        self.log = folder / "container.log"
        self._name = f"reserver-{time.monotonic_ns()}"
        self._folder = folder
        self._state = f"--root={folder / 'runc'}"
        spec = _runtime_spec(image, pod, container, env, mounts)
        (folder / "config.json").write_text(json.dumps(spec))

    def __enter__(self) -> Self:
        """Start it."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                ["runc", self._state, "run", f"--bundle={self._folder}", self._name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    def __exit__(self, *_: object) -> None:
        """End it, if it has not ended."""
        if self.process.poll() is None:
            self._runc("kill", self._name, "KILL")
            self.process.wait(_GRACE_S)

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in it, as a probe or `kubectl exec` does."""
        return self._runc("exec", self._name, *command)

    def processes(self) -> list[int]:
        """Return the ids of its processes, as the machine has them."""
        return list(json.loads(self._runc("ps", "--format=json", self._name).stdout))

    def stop(self) -> int:
        """End it as a kubelet does; return its exit status."""
        self._runc("kill", self._name, "TERM")
        return self.process.wait(_GRACE_S)

    def _runc(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["runc", self._state, *arguments], capture_output=True, text=True, check=False
        )


def _runtime_spec(
    image: Image,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    env: Mapping[str, str],
    mounts: Mapping[str, Path],
) -> dict[str, Any]:
    """Return the OCI configuration, without capabilities, as `restricted` demands."""
    security = container["securityContext"]
    said = {each["name"]: each["value"] for each in container.get("env", ())} | dict(env)
    bound = [
        {"destination": at, "type": "bind", "source": str(source), "options": ["rbind", "ro"]}
        for at, source in mounts.items()
    ]
    limit = quantity.amount("memory", container["resources"]["limits"]["memory"])
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {
                "uid": pod["securityContext"]["runAsUser"],
                "gid": pod["securityContext"]["runAsGroup"],
            },
            "args": [*container.get("command", image.config["Entrypoint"]), *container["args"]],
            "env": [*image.config["Env"], *(f"{name}={value}" for name, value in said.items())],
            "cwd": image.config.get("WorkingDir") or "/",
            "capabilities": {},
            "noNewPrivileges": not security["allowPrivilegeEscalation"],
        },
        "root": {"path": str(image.files), "readonly": security["readOnlyRootFilesystem"]},
        "mounts": [*_MOUNTS, *bound],
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")],
            "resources": {"memory": {"limit": limit}},
        },
    }
