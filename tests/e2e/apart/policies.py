"""Rounds of rebalancing, and the policies that they follow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.controlplane


def rebalanced(kubeconfig: Path, *flags: str) -> str:
    """Run a round that writes PodMoves; return its output."""
    command = [sys.executable, "-m", "reserver", "rebalance", "run", "--without-holds"]
    command += ["--mode", "reserve-first", "--kubeconfig", str(kubeconfig), *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def preferring(role: str) -> dict[str, Any]:
    """Return the affinity of a pod that would rather be on nodes of a role."""
    terms = {"matchExpressions": [{"key": "role", "operator": "In", "values": [role]}]}
    preferred = [{"weight": 10, "preference": terms}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def spreading(selector: str) -> dict[str, Any]:
    """Return a policy that spreads equal pods over the nodes with some labels."""
    return balancing(selector, "RemoveDuplicates", "balance")


def balancing(selector: str, plugin: str, point: str, **args: Any) -> dict[str, Any]:
    """Return a policy of one plugin for the nodes with some labels."""
    config = {"DefaultEvictor": {"nodeSelector": selector}, plugin: args}
    profile = {
        "name": "e2e",
        "pluginConfig": [{"name": name, "args": args} for name, args in config.items()],
        "plugins": {point: {"enabled": [plugin]}},
    }
    version, kind = "descheduler/v1alpha2", "DeschedulerPolicy"
    return {
        "apiVersion": version,
        "kind": kind,
        "nodeSelector": selector,
        "profiles": [profile],
    }
