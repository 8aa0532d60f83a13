"""`python -m hack.hostile` measures the cost of a hostile tenant, with a real API server.

First without, then with a tenant that continuously writes from the catalogue. The exit status is 1
if a bound is broken.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hack.bed.api import Api
from hack.bed.install import MOVES, WEBHOOKS, install
from hack.bed.pace import slowness
from hack.bench.client import Client
from hack.bench.server import FLOOR, serving
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.process import HeldPort, StartError
from hack.hostile.bounds import Found, Row, judge, quantile
from hack.hostile.catalogue import CATALOGUE
from hack.hostile.costly.entry import STORE
from hack.hostile.crowd import GANG_API, GANG_GATE, crowd
from hack.hostile.probe import Hold, Phase, Probe
from hack.hostile.tenant import JOURNAL, at_work
from hack.hostile.world import NODE_NAME, SCHEDULER, TENANT, World, tenant_kubeconfig
from hack.reserver_process import ReserverProcess
from reserver.webhook.certificates import CertificateMaker

_FLAGS = (
    "--grpc-address",
    "127.0.0.1:0",
    "--log-level",
    "info",
    "--configmap",
    f"{TENANT}/{STORE}",
    "--provisioning-requests",
    "--pod-moves",
)
_TENANT_KUBECONFIG = "tenant-kubeconfig"
_SHOWN_S = 10.0
_MOST_ENDS = 20
_MOST = 5


def main() -> None:
    """The command line."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="reserver-hostile-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        gangs = ControlPlane(controller_manager=False, gates=(GANG_GATE,), apis=(GANG_API,))
        with gangs as plane, closing(Api(plane.kubeconfig)) as api:
            found = _measure(options, plane, api, folder, console)
    except StartError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(f"interrupted; logs: {folder}")
    rows = list(judge(found))
    console.print(_table(rows))
    _explain(found.hostile, folder, console)
    if all(row.is_kept for row in rows) and not options.keep:
        shutil.rmtree(folder)
    sys.exit(not all(row.is_kept for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hack.hostile", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=20_000, help="bound, of others")
    parser.add_argument("--holds", type=int, default=200, help="of others: a node each")
    parser.add_argument("--quiet", type=float, default=40.0, help="seconds without the tenant")
    parser.add_argument("--seconds", type=float, default=120.0, help="seconds with the tenant")
    parser.add_argument("--calls", type=float, default=25.0, help="Filter calls a second")
    parser.add_argument("--writes", type=float, default=5.0, help="of the tenant a second, at most")
    parser.add_argument("--starts", type=int, default=3, help="starts in each phase")
    parser.add_argument("--only", default=",".join(CATALOGUE), help="of the catalogue")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the logs there")
    options = parser.parse_args()
    if unknown := set(options.only.split(",")) - set(CATALOGUE):
        known = ", ".join(CATALOGUE)
        parser.error(f"not in the catalogue: {', '.join(sorted(unknown))}; there are {known}")
    return options


def _tenants(
    options: argparse.Namespace, folder: Path, reserver: ReserverProcess, webhooks: HeldPort
) -> AbstractContextManager[None]:
    """Have the hostile tenants at work until the block ends."""
    return at_work(
        folder / _TENANT_KUBECONFIG,
        folder,
        nodes=options.nodes,
        node_name=NODE_NAME,
        grpc_address=reserver.grpc_address,
        webhook_url=f"https://127.0.0.1:{webhooks.number}",
        rate=options.writes,
        only=options.only,
        scheduler=SCHEDULER,
    )


def _measure(
    options: argparse.Namespace, plane: ControlPlane, api: Api, folder: Path, console: Console
) -> Found:
    began = time.monotonic()

    def show(text: str) -> None:
        console.print(f"{time.monotonic() - began:4.0f} s  {text}", highlight=False)

    kubeconfig = install(plane.kubeconfig, plane.folder, TENANT, components=(*MOVES, *WEBHOOKS))
    webhooks = HeldPort()
    world = World.create(
        api, nodes=options.nodes, pods=options.pods, holds=options.holds, show=show
    )
    tenant_kubeconfig(plane.kubeconfig, api, folder / _TENANT_KUBECONFIG)
    with (
        serving(FLOOR) as server,
        Client(server.port()) as floor,
        ReserverProcess(
            kubeconfig, folder / "reserver.log", *_FLAGS, *_webhooks(folder, webhooks.number)
        ) as reserver,
    ):
        kubelet = Kubelet(reserver, show)
        probe = Probe(reserver, world, api, options.calls, floor)
        quiet_starts = kubelet.restart(options.starts)
        quiet = probe.run("quiet", options.quiet, kubelet.attend)
        slow = slowness()
        show(f"this machine takes {slow:.1f} times as long as an idle core")
        show("the tenants come")
        crowd(api, world.nodes)
        with _tenants(options, folder, reserver, webhooks):
            hostile = probe.run("hostile", options.seconds, kubelet.attend)
            hostile_starts = kubelet.restart(options.starts)
    return Found(
        quiet=quiet,
        hostile=hostile,
        quiet_starts=quiet_starts,
        hostile_starts=hostile_starts,
        ended=kubelet.ended,
        slowness=slow,
    )


def _webhooks(folder: Path, port: int) -> tuple[str, ...]:
    """Write a certificate; return the flags of the webhooks."""
    pair = CertificateMaker(["127.0.0.1"]).make(time.time())
    certificate, key = folder / "webhooks.crt", folder / "webhooks.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.private_key)
    return (
        f"--webhook-address=127.0.0.1:{port}",
        f"--webhook-cert-file={certificate}",
        f"--webhook-private-key-file={key}",
    )


class Kubelet:
    """Restarts Reserver when it has ended.

    Attributes:
        ended: number of times that it ended by itself.
    """

    def __init__(self, reserver: ReserverProcess, show: Callable[[str], None]) -> None:
        self._reserver = reserver
        self._show = show
        self._shown = 0.0
        self.ended = 0

    def attend(self, phase: Phase) -> None:
        """Restart Reserver if needed, and show the progress from time to time."""
        if self._reserver.process.poll() is not None:
            self.ended += 1
            self._show("reserver has ended by itself")
            if self.ended > _MOST_ENDS:
                raise SystemExit(f"reserver ends again and again: {self._reserver.log}")
            self._reserver.start()
        if time.monotonic() - self._shown >= _SHOWN_S:
            self._shown = time.monotonic()
            p99 = 1000 * quantile(phase.seconds, 0.99)
            longest = 1000 * max(phase.looks, default=0)
            self._show(
                f"{phase.name}: {len(phase.seconds)} calls, p99 {p99:.1f} ms, longest look "
                f"{longest:.0f} ms, {phase.unready} not ready, {phase.rss >> 20} MiB"
            )

    def restart(self, times: int) -> list[float]:
        """Kill it `times` times; return the seconds of each start until it was ready."""
        seconds = []
        for _ in range(times):
            self._reserver.kill()
            began = time.monotonic()
            self._reserver.start()
            seconds.append(time.monotonic() - began)
            self._show(f"restart to ready: {seconds[-1]:.1f} s")
        return seconds


def _table(rows: Sequence[Row]) -> Table:
    shown = Table()
    for title in ("", "quiet", "hostile", "bound"):
        shown.add_column(title, justify="right" if title else "left", no_wrap=True)
    for row in rows:
        style = None if row.is_kept else "bold red"
        shown.add_row(row.what, row.quiet, row.hostile, row.bound, style=style)
    return shown


def _longest(held: tuple[object, list[Hold]]) -> float:
    return -max(hold.seconds for hold in held[1])


def _explain(phase: Phase, folder: Path, console: Console) -> None:
    """Print the API server's answers, the failures, and the functions that blocked the loop."""
    lines = [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]
    for what in sorted({line["what"] for line in lines}):
        answers = Counter(line["status"] for line in lines if line["what"] == what)
        told = ", ".join(f"{count} × {status}" for status, count in sorted(answers.items()))
        console.print(f"{what:<20} {told}", highlight=False)
    for failure, count in Counter(phase.failures).most_common(_MOST):
        console.print(f"failed {count} ×: {failure}", highlight=False, soft_wrap=True)
    held: dict[tuple[str, str], list[Hold]] = {}
    for hold in phase.held:
        held.setdefault((hold.by, hold.task), []).append(hold)
    for (by, task), holds in sorted(held.items(), key=_longest):
        longest = max(holds, key=lambda hold: hold.seconds)
        told = f"{len(holds)} × by {by} ({task}), {longest.seconds:.2f} s at most"
        console.print(f"held {told}, {longest.cpu_seconds:.2f} s of CPU", highlight=False)


if __name__ == "__main__":
    main()
