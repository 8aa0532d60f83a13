"""Kubeconfig files, written as JSON, which is valid YAML."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from hack.controlplane.build import bin_dir


def write_kubeconfig(path: Path, cluster: dict[str, Any], token: str) -> None:
    """Write a kubeconfig (mode 0600) for a bearer token; `cluster` is the entry's `cluster`."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "user"}}],
        "current-context": "context",
    }
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file, indent=1)


def service_account_kubeconfig(kubeconfig: Path, namespace: str, name: str, path: Path) -> None:
    """Write a kubeconfig for a service account to `path`, valid for a day.

    Works on any cluster; the user of `kubeconfig` must be allowed to create tokens.

    Raises:
        subprocess.CalledProcessError: the service account does not exist, or the token is refused.
    """
    token = kubectl(kubeconfig, "create", "token", name, "-n", namespace, "--duration=24h")
    view = json.loads(kubectl(kubeconfig, "config", "view", "--raw", "--minify", "-o", "json"))
    write_kubeconfig(path, view["clusters"][0]["cluster"], token.strip())


def kubectl(kubeconfig: Path, *arguments: str) -> str:
    """Run the pinned kubectl and return its output.

    Raises:
        subprocess.CalledProcessError: it failed; `stderr` has the reason.
    """
    command: list[str | Path] = [bin_dir() / "kubectl", f"--kubeconfig={kubeconfig}", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
