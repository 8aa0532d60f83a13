"""Records every write to pods, nodes and reservations, for `hack.promises` to judge.

`history.jsonl` has one line a write: ``{"at", "collection", "type", "object"}``; `at` is when the
recorder received it, in unix seconds. Besides ADDED, MODIFIED, DELETED and LISTED there are GAP
(``object.since`` to ``object.metadata.resourceVersion``: missed revisions; objects deleted
meanwhile are in ``object.gone``), OUTAGE (the API server was away from ``object.since`` to
`at`) and END.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec
from kubernetes import client, config

from hack.programs import end
from hack.promises.watch import Watch

HISTORY = "history.jsonl"
_LABEL = "reserver.io/store=true"
_OBJECTS = ("reserver.io", "v1alpha1")
_READY = "recording"
_START_S = 60.0
_LINGER_S = 1.0
"""Seconds in which the recorder waits for the last writes after its input ends."""


class Recorder:
    """Records in a process of its own, so that a busy test does not delay the moments it notes.

    Args:
        kubeconfig: credentials that may list and watch pods, nodes and the ConfigMaps.
        folder: the folder of `history.jsonl`.
        configmaps: (namespace, name) of stores without the label.
        label_namespace: the namespace of the labelled stores to record.
        objects: record Reservations, too; the CRD has to exist.
        moves: record PodMoves and volumes, too; the CRD has to exist.
        not_in: a namespace whose pods and Reservations are not recorded.
    """

    def __init__(  # noqa: PLR0913 - what may be recorded
        self,
        kubeconfig: Path,
        folder: Path,
        configmaps: Sequence[tuple[str, str]] = (),
        label_namespace: str = "reserver-system",
        *,
        objects: bool = False,
        moves: bool = False,
        not_in: str = "",
    ) -> None:
        self._folder = folder
        self._command = [sys.executable, "-m", "hack.promises.record", str(folder)]
        self._command += ["--kubeconfig", str(kubeconfig), "--label-namespace", label_namespace]
        for namespace, name in configmaps:
            self._command += ["--configmap", f"{namespace}/{name}"]
        if objects:
            self._command.append("--objects")
        if moves:
            self._command.append("--moves")
        if not_in:
            self._command += ["--not-in", not_in]

    def __enter__(self) -> Self:
        """Return once all is listed and watched.

        Raises:
            RuntimeError: the recorder did not start.
        """
        root = Path(__file__).parents[2]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            self._command,
            stdin=pipe,
            stdout=pipe,
            cwd=root,
            start_new_session=True,  # A Ctrl-C in the terminal is not meant for it.
        )
        assert self._process.stdout is not None  # noqa: S101 - for mypy
        if self._process.stdout.readline().strip() != _READY.encode():
            end(self._process)
            raise RuntimeError(f"the recorder ended with {self._process.returncode}")
        return self

    def __exit__(self, *_: object) -> None:
        """Return once the last write is on disk."""
        # The end of its input ends it, which the end of this process brings about as well.
        try:
            self._process.communicate(timeout=_START_S)
        finally:
            end(self._process)

    @property
    def history(self) -> Path:
        """The file that is written."""
        return self._folder / HISTORY


class Journal:
    """A file of lines that several threads write to."""

    def __init__(self, path: Path) -> None:
        """Append to `path`."""
        self._file = path.open("ab")
        self._lock = threading.Lock()

    def write(self, collection: str, kind: str, item: dict[str, Any]) -> None:
        """Write one line, at once."""
        item.get("metadata", {}).pop("managedFields", None)
        line = {"at": time.time(), "collection": collection, "type": kind, "object": item}
        with self._lock:
            if not self._file.closed:
                self._file.write(msgspec.json.encode(line) + b"\n")
                self._file.flush()

    def end(self) -> None:
        """Write that nothing comes after this, and see to it."""
        self.write("", "END", {})
        with self._lock:
            self._file.close()


def _config_maps(
    core: Any,  # noqa: ANN401 - as below
    configmaps: Sequence[str],
    label_namespace: str,
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the lists of stores: by their label in one namespace, and by `namespace/name`."""
    listing = partial(core.list_namespaced_config_map, label_namespace, label_selector=_LABEL)
    yield "configmaps", listing
    for configmap in configmaps:
        namespace, name = configmap.split("/")
        selector = f"metadata.name={name}"
        yield (
            "configmaps",
            partial(core.list_namespaced_config_map, namespace, field_selector=selector),
        )


def _collections(
    core: Any,  # noqa: ANN401 - as below
    kinds: Sequence[str],
    not_in: str,
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the lists of pods, nodes and custom objects outside a namespace."""
    elsewhere = {"field_selector": f"metadata.namespace!={not_in}"} if not_in else {}
    yield "pods", partial(core.list_pod_for_all_namespaces, **elsewhere)
    yield "nodes", core.list_node
    if "podmoves" in kinds:
        yield "persistentvolumes", core.list_persistent_volume
        yield "persistentvolumeclaims", core.list_persistent_volume_claim_for_all_namespaces
    custom: Any = client.CustomObjectsApi(core.api_client)
    for kind in kinds:
        yield kind, partial(custom.list_cluster_custom_object, *_OBJECTS, kind, **elsewhere)


def record(
    core: Any,  # noqa: ANN401 - the client's types do not know _preload_content
    folder: Path,
    configmaps: Sequence[str],
    label_namespace: str,
    *,
    kinds: Sequence[str],
    not_in: str,
) -> None:
    """Record until standard input ends; print a line once all is listed."""
    stopping = threading.Event()
    journal = Journal(folder / HISTORY)
    requests = [
        *_config_maps(core, configmaps, label_namespace),
        *_collections(core, kinds, not_in),
    ]
    watches = [Watch(name, request, journal.write, stopping) for name, request in requests]
    for watch in watches:
        watch.start()
    if all(watch.listed.wait(_START_S) for watch in watches):
        print(_READY, flush=True)
        sys.stdin.read()
        time.sleep(_LINGER_S)
    stopping.set()
    for watch in watches:
        watch.found()
    journal.end()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.promises.record", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--configmap", action="append", default=[], metavar="NAMESPACE/NAME")
    parser.add_argument("--label-namespace", default="reserver-system")
    parser.add_argument("--objects", action="store_true", help="record Reservations, too")
    parser.add_argument("--moves", action="store_true", help="record PodMoves, too")
    parser.add_argument("--not-in", default="", metavar="NAMESPACE", help="record nothing of it")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    core = client.CoreV1Api(config.new_client_from_config(str(options.kubeconfig)))
    arguments = (core, options.folder, options.configmap, options.label_namespace)
    recorded = {"reservations": options.objects, "podmoves": options.moves}
    kinds = [kind for kind, is_asked in recorded.items() if is_asked]
    record(*arguments, kinds=kinds, not_in=options.not_in)


if __name__ == "__main__":
    main()
