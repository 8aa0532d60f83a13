"""`python -m hack.bench.upstream.beside WAY PORT KUBECONFIG` runs an extender for a workload.

`reserver` is Reserver, `least` the extender in Go that decides nothing. It prints a line once the
extender is ready, and stops it when its standard input ends.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.bed.install import CORE
from hack.bench.throughput.variants import BEST, plain_extender
from hack.controlplane.kubeconfig import kubectl
from hack.controlplane.process import answers
from hack.programs import started
from hack.reserver_process import wait_for


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=("reserver", "least"))
    parser.add_argument("port", type=int)
    parser.add_argument("kubeconfig", type=Path)
    options = parser.parse_args()
    run = _reserver if options.way == "reserver" else _least
    with run(options.kubeconfig, options.port):
        print("ready", flush=True)
        sys.stdin.read()


@contextmanager
def _reserver(kubeconfig: Path, port: int) -> Iterator[None]:
    files = [part for file in CORE for part in ("-f", str(file))]
    try:
        kubectl(kubeconfig, "create", "namespace", "reserver-system")
        kubectl(kubeconfig, "apply", *files)
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr)
    flags = [f"--kubeconfig={kubeconfig}", f"--http-port={port}"]
    reserver = [sys.executable, "-m", "reserver", "serve", "--log-level=info", *flags]
    with (
        tempfile.NamedTemporaryFile(prefix="reserver-", suffix=".log", delete=False) as log,
        started(*reserver, grace_s=30, stdout=log, stderr=log),
    ):
        wait_for(lambda: answers(port, "/readyz"), f"reserver is ready: {log.name}")
        yield


@contextmanager
def _least(kubeconfig: Path, port: int) -> Iterator[None]:
    with plain_extender(BEST, "-least", f"-port={port}")(kubeconfig, kubeconfig.parent):
        yield


if __name__ == "__main__":
    main()
