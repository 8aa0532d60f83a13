"""The variants: kube-scheduler alone, with Reserver, and with a plain extender in Go."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import trustme
import yaml

from hack.controlplane.build import HERE
from hack.controlplane.process import answers
from hack.controlplane.scheduler_config import PLAIN_SCHEDULER, render_scheduler_config
from hack.go_tool import PLAIN_EXTENDER
from hack.programs import started
from hack.reserver_process import ReserverProcess, wait_for

_CONFIG = HERE.parents[1] / "scheduler-config"
_SHIPPED = _CONFIG / "kube-scheduler.yaml"
_SHIPPED_TLS = _CONFIG / "static-pod/kube-scheduler.yaml"

BEST = 100
"""Most names in an answer of Reserver, and of the second plain extender."""


class Extender(NamedTuple):
    """A running extender.

    Attributes:
        pid: its process.
        port: its port on loopback.
        tls: folder of the files for mutual TLS; None for plain HTTP.
    """

    pid: int
    port: int
    tls: Path | None = None


class Variant(NamedTuple):
    """A way of scheduling.

    Attributes:
        title: its name in the table.
        verbs: verbs of the extender in kube-scheduler's configuration; empty without an extender.
        run: starts the extender with a kubeconfig and a folder for its log.
    """

    title: str
    verbs: frozenset[str] = frozenset()
    run: Callable[[Path, Path], AbstractContextManager[Extender]] | None = None

    def config(self, kubeconfig: Path, running: Extender | None, name: str) -> str:
        """Return the KubeSchedulerConfiguration, for pods of a `schedulerName`."""
        if running is None:
            return render_scheduler_config(
                PLAIN_SCHEDULER, kubeconfig=kubeconfig, scheduler_name=name
            )
        text = render_scheduler_config(
            _SHIPPED, kubeconfig=kubeconfig, port=running.port, scheduler_name=name
        )
        config: dict[str, Any] = yaml.safe_load(text)
        (extender,) = config["extenders"]
        for verb in ("filterVerb", "preemptVerb", "bindVerb"):
            if verb not in self.verbs:
                del extender[verb]
        if running.tls is not None:
            config["extenders"] = list(_over_tls(running.port, running.tls))
        return yaml.safe_dump(config, sort_keys=False)


def _over_tls(port: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the extenders of the static pod's configuration."""
    for extender in yaml.safe_load(_SHIPPED_TLS.read_text())["extenders"]:
        files = {key: str(folder / Path(file).name) for key, file in extender["tlsConfig"].items()}
        yield extender | {"urlPrefix": f"https://127.0.0.1:{port}", "tlsConfig": files}


@contextmanager
def _reserver(kubeconfig: Path, folder: Path) -> Iterator[Extender]:
    log = folder / "reserver.log"
    with ReserverProcess(kubeconfig, log, "--log-level", "info") as reserver:
        yield Extender(reserver.process.pid, reserver.port)


@contextmanager
def _reserver_tls(kubeconfig: Path, folder: Path) -> Iterator[Extender]:
    issue(folder)
    files = ("tls-cert-file", "tls.crt"), ("tls-private-key-file", "tls.key")
    flags = [f"--{flag}={folder / file}" for flag, file in files]
    flags += [f"--extender-client-ca-file={folder / 'ca.crt'}", "--health-address=127.0.0.1:0"]
    log = folder / "reserver-tls.log"
    level = ("--log-level", "info")
    with ReserverProcess(kubeconfig, log, *level, *flags, wait_ready=False) as reserver:
        port = urlsplit(reserver.health_url).port or 0
        wait_for(lambda: answers(port, "/readyz"), "reserver is ready")
        yield Extender(reserver.process.pid, reserver.port, folder)


def issue(folder: Path) -> None:
    """Write certificates of Reserver, of kube-scheduler and of their CA."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.crt")
    of_scheduler = ca.issue_cert(common_name="system:kube-scheduler")
    for who, issued in (("tls", ca.issue_cert("127.0.0.1")), ("client", of_scheduler)):
        issued.private_key_pem.write_to_path(folder / f"{who}.key")
        issued.cert_chain_pems[0].write_to_path(folder / f"{who}.crt")


def plain_extender(
    most: int, *flags: str
) -> Callable[[Path, Path], AbstractContextManager[Extender]]:
    """Return a function that starts a Go extender with at most `most` names per answer; 0: all.

    With `-least` it does as little as an extender can: it decodes no call to Filter.
    """

    @contextmanager
    def run(kubeconfig: Path, folder: Path) -> Iterator[Extender]:
        command = [
            str(PLAIN_EXTENDER.build()),
            f"-kubeconfig={kubeconfig}",
            f"-answer={most}",
            *flags,
        ]
        pipe = subprocess.PIPE
        with (
            (folder / "plain-extender.log").open("ab") as log,
            started(*command, grace_s=30, stdout=pipe, stderr=log, text=True) as process,
        ):
            yield Extender(process.pid, int(process.stdout.readline() if process.stdout else 0))

    return run


_FILTER = frozenset({"filterVerb"})
_FILTER_BIND = _FILTER | {"bindVerb"}

VARIANTS = {
    "stock": Variant("kube-scheduler alone"),
    "reserver": Variant("Reserver", _FILTER_BIND | {"preemptVerb"}, _reserver),
    "tls": Variant("Reserver, mutual TLS", _FILTER_BIND | {"preemptVerb"}, _reserver_tls),
    "filter": Variant("Reserver, Filter only", _FILTER, _reserver),
    "plain": Variant("plain Go extender, all names", _FILTER_BIND, plain_extender(0)),
    "plain-best": Variant(f"plain Go extender, {BEST} names", _FILTER_BIND, plain_extender(BEST)),
    "least": Variant("Go, decides nothing", _FILTER_BIND, plain_extender(BEST, "-least")),
}
