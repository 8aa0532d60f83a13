"""KWOK simulates the kubelets of the nodes that `create_nodes` makes, and of no other node.

`python -m hack.controlplane.kwok --kubeconfig FILE` does so on any cluster, until Ctrl-C.
"""

import argparse
import os
from pathlib import Path

from hack.controlplane.build import HERE, bin_dir

FAKE = "kwok.x-k8s.io/node=fake"  # the annotation of KWOK's nodes
LEASE_SECONDS = 40


def kwok_command(
    kubeconfig: Path,
    *,
    version: str | None = None,
    leases: bool = True,
    nodes: str = FAKE,
    port: int = 0,
    config: Path | None = None,
) -> list[str | Path]:
    """Return the command of kwok for a cluster.

    Args:
        kubeconfig: kubeconfig of a user with all rights of a kubelet.
        version: version of the pinned binary; the newest by default.
        leases: renew node leases every 10 s. Only a controller manager reads them.
        nodes: annotation of the nodes whose kubelet is simulated.
        port: loopback port of the kubelet's server; 0 for none.
        config: further objects of KWOK, such as the target of a port-forward.
    """
    serving = [f"--server-address=127.0.0.1:{port}", f"--node-port={port}"] if port else []
    more = [f"--config={config}"] if config else []
    return [
        bin_dir(version) / "kwok",
        f"--kubeconfig={kubeconfig}",
        f"--config={HERE / 'kwok-stages.yaml'}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={nodes}",
        "--node-ip=127.0.0.1",
        f"--node-lease-duration-seconds={LEASE_SECONDS if leases else 0}",
        *serving,
        *more,
    ]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of the cluster")
    command = kwok_command(parser.parse_args().kubeconfig)
    os.execv(command[0], [str(part) for part in command])  # noqa: S606 (no shell is meant)


if __name__ == "__main__":
    main()
