"""`python -m hack.bench.upstream.beside PORT KUBECONFIG` runs Reserver for a workload.

It prints a line once Reserver is ready, and stops it when its standard input ends.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from hack.bed.install import CORE
from hack.controlplane.kubeconfig import kubectl
from hack.controlplane.process import answers
from hack.programs import started
from hack.reserver_process import wait_for


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("kubeconfig", type=Path)
    options = parser.parse_args()
    files = [part for file in CORE for part in ("-f", str(file))]
    try:
        kubectl(options.kubeconfig, "create", "namespace", "reserver-system")
        kubectl(options.kubeconfig, "apply", *files)
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr)
    flags = [f"--kubeconfig={options.kubeconfig}", f"--http-port={options.port}"]
    reserver = [sys.executable, "-m", "reserver", "serve", "--log-level=info", *flags]
    with (
        tempfile.NamedTemporaryFile(prefix="reserver-", suffix=".log", delete=False) as log,
        started(*reserver, grace_s=30, stdout=log, stderr=log),
    ):
        wait_for(lambda: answers(options.port, "/readyz"), f"reserver is ready: {log.name}")
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
