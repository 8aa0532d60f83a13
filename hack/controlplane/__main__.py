"""`python -m hack.controlplane --nodes 5` runs a control plane until Ctrl-C."""

import argparse
import contextlib
import signal
import sys
from pathlib import Path

from hack.controlplane.build import versions
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.nodes import create_nodes
from hack.controlplane.process import StartError
from hack.controlplane.scheduler_config import PLAIN_SCHEDULER, render_scheduler_config


def main() -> None:
    """Run a control plane until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Runs a control plane on loopback until Ctrl-C.")
    parser.add_argument(
        "--version", choices=versions(), help="of Kubernetes (default: $KUBERNETES, newest)"
    )
    parser.add_argument("--nodes", type=int, default=0, metavar="N", help="create N nodes")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--scheduler-config",
        type=Path,
        default=PLAIN_SCHEDULER,
        metavar="FILE",
        help="run kube-scheduler with this (default: no extender); kubeconfig is filled in",
    )
    what.add_argument("--no-scheduler", action="store_true", help="run no kube-scheduler")
    options = parser.parse_args()
    # Both signals clean up. By default SIGTERM would not, nor SIGINT of a script's background
    # command, which shells make ignore it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    try:
        with contextlib.suppress(KeyboardInterrupt), ControlPlane(version=options.version) as plane:
            config = None if options.no_scheduler else options.scheduler_config
            _show(plane, config, create_nodes(plane.kubeconfig, options.nodes))
            signal.pause()
    except StartError as error:
        sys.exit(str(error))


def _show(plane: ControlPlane, scheduler_config: Path | None, nodes: list[str]) -> None:
    """Start the scheduler, if a configuration is given, and print addresses and processes."""
    if scheduler_config:
        config = plane.folder / "scheduler.yaml"
        config.write_text(render_scheduler_config(scheduler_config, kubeconfig=plane.kubeconfig))
        plane.start_scheduler(config)
    print(f"kube-apiserver  {plane.url}")
    print(f"nodes           {len(nodes)}")
    print(f"processes       {', '.join(f'{name} {pid}' for name, pid in plane.pids.items())}")
    print(f"logs            {plane.logs_dir}")
    print(f"scheduler       {scheduler_config or 'none'}")
    print(f"\nexport KUBECONFIG={plane.kubeconfig}\n\nCtrl-C stops and removes it all.", flush=True)


if __name__ == "__main__":
    main()
