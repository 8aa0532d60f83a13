"""KWOK plays the kubelets of the nodes that `create_nodes` makes, and of no other node.

`python -m hack.controlplane.kwok --kubeconfig FILE` does so on any cluster, until Ctrl-C.
"""

import argparse
import os
from pathlib import Path

from hack.controlplane.build import HERE, bin_dir

FAKE = "kwok.x-k8s.io/node=fake"  # the annotation by which KWOK knows its nodes
LEASE_SECONDS = 40


def kwok_command(
    kubeconfig: Path, *, version: str | None = None, leases: bool = True
) -> list[str | Path]:
    """The command that runs kwok against a cluster.

    Args:
        kubeconfig: of a user who may do all that a kubelet may.
        version: the pins to take the binary of; the newest by default.
        leases: renew node leases every 10 s. Only a controller manager reads them.
    """
    return [
        bin_dir(version) / "kwok",
        f"--kubeconfig={kubeconfig}",
        f"--config={HERE / 'kwok-stages.yaml'}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={FAKE}",
        f"--node-lease-duration-seconds={LEASE_SECONDS if leases else 0}",
    ]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of the cluster")
    command = kwok_command(parser.parse_args().kubeconfig)
    os.execv(command[0], [str(part) for part in command])  # noqa: S606 (no shell is meant)


if __name__ == "__main__":
    main()
