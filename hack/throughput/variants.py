"""What is compared: kube-scheduler alone, with Reserver, and with a plain extender in Go."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hack.controlplane.build import HERE
from hack.controlplane.scheduler_config import PLAIN_SCHEDULER, render_scheduler_config
from hack.go_tool import PLAIN_EXTENDER
from hack.reserver_process import ReserverProcess

_SHIPPED = HERE.parents[1] / "scheduler-config/kube-scheduler.yaml"

BEST = 100
"""Names that Reserver answers at most, and the second of the plain extenders."""


class Extender(NamedTuple):
    """A running extender.

    Attributes:
        pid: of its process.
        port: on loopback.
    """

    pid: int
    port: int


class Variant(NamedTuple):
    """A way of scheduling.

    Attributes:
        title: what the table calls it.
        verbs: that kube-scheduler calls its extender for; nothing without an extender.
        run: starts the extender with a kubeconfig and a folder for its log.
    """

    title: str
    verbs: frozenset[str] = frozenset()
    run: Callable[[Path, Path], AbstractContextManager[Extender]] | None = None

    def config(self, kubeconfig: Path, port: int | None, name: str) -> str:
        """Return the KubeSchedulerConfiguration, for pods of a `schedulerName`."""
        if port is None:
            return render_scheduler_config(
                PLAIN_SCHEDULER, kubeconfig=kubeconfig, scheduler_name=name
            )
        text = render_scheduler_config(
            _SHIPPED, kubeconfig=kubeconfig, port=port, scheduler_name=name
        )
        config: dict[str, Any] = yaml.safe_load(text)
        (extender,) = config["extenders"]
        for verb in ("filterVerb", "preemptVerb", "bindVerb"):
            if verb not in self.verbs:
                del extender[verb]
        return yaml.safe_dump(config, sort_keys=False)


@contextmanager
def _reserver(kubeconfig: Path, folder: Path) -> Iterator[Extender]:
    log = folder / "reserver.log"
    with ReserverProcess(kubeconfig, log, "--log-level", "info") as reserver:
        yield Extender(reserver.process.pid, reserver.port)


def plain_extender(
    most: int, *flags: str
) -> Callable[[Path, Path], AbstractContextManager[Extender]]:
    """Return what starts an extender in Go that answers so many names at most; 0: all.

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
        with (
            (folder / "plain-extender.log").open("ab") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
        ):
            try:
                yield Extender(process.pid, int(process.stdout.readline() if process.stdout else 0))
            finally:
                process.terminate()

    return run


_FILTER = frozenset({"filterVerb"})
_FILTER_BIND = _FILTER | {"bindVerb"}

VARIANTS = {
    "stock": Variant("kube-scheduler alone"),
    "reserver": Variant("Reserver", _FILTER_BIND | {"preemptVerb"}, _reserver),
    "filter": Variant("Reserver, Filter only", _FILTER, _reserver),
    "plain": Variant("plain Go extender, all names", _FILTER_BIND, plain_extender(0)),
    "plain-best": Variant(f"plain Go extender, {BEST} names", _FILTER_BIND, plain_extender(BEST)),
    "least": Variant("Go, decides nothing", _FILTER_BIND, plain_extender(BEST, "-least")),
}
