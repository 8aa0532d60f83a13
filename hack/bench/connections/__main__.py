"""`python -m hack.bench.connections` measures the cost of TLS and HTTP/2 (docs/adr/0086).

A client in Go calls as kube-scheduler does, and a server decides in a cluster of 1,000 nodes; a
Bind takes 10 ms. Only installed servers take part: granian and hypercorn in this Python, nghttpx on
PATH.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

from hack.bench.documents import encode, new_pod
from hack.bench.report import progress, table
from hack.bench.throughput.variants import issue
from hack.bench.world import SAMPLED, node_names
from hack.controlplane.build import BuildError
from hack.controlplane.process import HeldPort
from hack.go_tool import GoTool
from hack.programs import cpu_s, done, heed_signals, started

_CLIENT = GoTool("connections-client", ".", "bench/connections/client")
_NAMES = 500


class Way(NamedTuple):
    """A server, with the flags of its client.

    Attributes:
        title: its name in the table.
        server: kind of the server to start.
        flags: flags of the client.
        front: whether nghttpx is the proxy in front of it.
    """

    title: str
    server: str
    flags: tuple[str, ...] = ()
    front: bool = False


class Turn(NamedTuple):
    """The result of a turn.

    Attributes:
        rate: pods a second.
        filter_ms: milliseconds of a Filter call.
        cpu_ms: milliseconds of CPU of the servers for each pod.
        connections: opened connections for each pod.
        protocol: protocol of the last answer.
    """

    rate: float
    filter_ms: float
    cpu_ms: float
    connections: float
    protocol: str


WAYS = (
    Way("Reserver, plain", "plain"),
    Way("Reserver, TLS, an entry each", "tls", ("-apart",)),
    Way("granian (Rust, hyper), in our event loop", "granian", ("-http2",)),
    Way("nghttpx (C, nghttp2) before plain Reserver", "plain", ("-http2",), front=True),
    Way("hypercorn (Python, h2)", "hypercorn", ("-http2",)),
)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.bench.connections", description=__doc__)
    parser.add_argument("--pods", type=int, default=400, help="in a turn")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each")
    options = parser.parse_args()
    heed_signals()
    ways = [way for way in WAYS if _is_there(way)]
    found: dict[Way, list[Turn]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(prefix="reserver-connections-") as name:
        folder = Path(name)
        issue(folder)
        names = node_names(1_000, order=SAMPLED)[:_NAMES]
        call = {"Pod": new_pod("web-1"), "Nodes": None, "NodeNames": names}
        (folder / "call").write_bytes(encode(call))
        try:
            client = _CLIENT.build()
            for _ in range(options.rounds):
                for way, turns in found.items():
                    turns.append(_turn(way, client, folder, options.pods))
                    progress(f"{way.title}: {turns[-1].rate:.0f} pods/s")
        except (BuildError, subprocess.CalledProcessError) as error:
            sys.exit(getattr(error, "stderr", None) or str(error))
    header = ("server", "protocol", "pods/s", "of plain", "Filter", "CPU for a pod", "connections")
    rows = [_row(way, turns, found[ways[0]]) for way, turns in found.items()]
    print(table("Connections", header, rows))


def _is_there(way: Way) -> bool:
    if way.front:
        return shutil.which("nghttpx") is not None
    return way.server in ("plain", "tls") or find_spec(way.server) is not None


def _turn(way: Way, client: Path, folder: Path, pods: int) -> Turn:
    command = (sys.executable, "-m", "hack.bench.connections.server", way.server, str(folder))
    pipe = subprocess.PIPE
    with started(*command, grace_s=10, stdin=pipe, stdout=pipe, text=True) as server:
        port = int(server.stdout.readline() if server.stdout else 0)
        with _before(way, port, folder) as (front, others):
            has_tls = way.front or way.server != "plain"
            url = f"{'https' if has_tls else 'http'}://127.0.0.1:{front}"
            flags = [f"-url={url}", f"-pods={pods}", f"-body={folder / 'call'}", *way.flags]
            if has_tls:
                flags.append(f"-tls={folder}")
            pids = [server.pid, *others]
            before = sum(map(cpu_s, pids))
            ended = done(str(client), *flags, timeout_s=300)
            ended.check_returncode()
            used = sum(map(cpu_s, pids)) - before
    rate, filter_ms, connections, protocol = ended.stdout.split()
    cpu_ms = used * 1e3 / (pods + 100)  # 100 warm up.
    return Turn(float(rate), float(filter_ms), cpu_ms, int(connections) / pods, protocol)


@contextmanager
def _before(way: Way, port: int, folder: Path) -> Iterator[tuple[int, list[int]]]:
    """Yield the port to call, and the processes in front of the server."""
    if not way.front:
        yield port, []
        return
    held = HeldPort()
    held.close()
    flags = [f"-f127.0.0.1,{held.number}", f"-b127.0.0.1,{port}", "-n1", "--no-ocsp"]
    flags += ["--verify-client", f"--verify-client-cacert={folder / 'ca.crt'}", "--conf=/dev/null"]
    files = str(folder / "tls.key"), str(folder / "tls.crt")
    with started("nghttpx", *flags, *files, stderr=subprocess.DEVNULL) as process:
        time.sleep(1)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield held.number, [process.pid, *map(int, children)]


def _row(way: Way, turns: Sequence[Turn], plain: Sequence[Turn]) -> tuple[str, ...]:
    ratio = median(own.rate / other.rate for own, other in zip(turns, plain, strict=True))
    return (
        way.title,
        turns[0].protocol,
        f"{median(turn.rate for turn in turns):.0f}",
        f"{ratio:.2f}",
        f"{median(turn.filter_ms for turn in turns):.2f} ms",
        f"{median(turn.cpu_ms for turn in turns):.2f} ms",
        f"{median(turn.connections for turn in turns):.2f}",
    )


if __name__ == "__main__":
    main()
