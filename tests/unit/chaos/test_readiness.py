"""The numbers of ready pods and the times without one, from the log of all writes."""

from __future__ import annotations

from typing import Any

import pytest

from hack.chaos.moving.readiness import Readiness, readiness
from hack.promises.history import history_of


class Log:
    """Writes to pods, one per second."""

    def __init__(self) -> None:
        self._records: list[dict[str, Any]] = []

    def pod(self, name: str, *, ready: bool = True, app: str = "web", **more: Any) -> None:
        self._write("pods", "MODIFIED", name, ready=ready, app=app, **more)

    def gone(self, name: str) -> None:
        self._write("pods", "DELETED", name, ready=True, app="web")

    def passes(self) -> None:
        self._write("nodes", "MODIFIED", "worker-1", ready=True, app="web")

    def found(self) -> Readiness:
        at = float(len(self._records) + 1)
        end = {"at": at, "collection": "", "type": "END", "object": {}}
        return readiness(history_of([*self._records, end]), "web")

    def _write(
        self, collection: str, kind: str, name: str, *, ready: bool, app: str, **more: Any
    ) -> None:
        revision = len(self._records) + 1
        metadata = {"name": name, "uid": name, "labels": {"app": app}, **more}
        metadata["resourceVersion"] = str(revision)
        conditions = [{"type": "Ready", "status": str(ready)}]
        body = {"metadata": metadata, "status": {"conditions": conditions}}
        at = float(revision)
        self._records.append({"at": at, "type": kind, "collection": collection, "object": body})


def test_a_copy_that_is_ready_before_the_pod_goes_leaves_no_gap() -> None:
    log = Log()
    log.pod("web-0")
    log.pod("web-1", ready=False)
    log.pod("web-1")
    log.pod("web-0", deletionTimestamp="now")
    log.gone("web-0")
    assert log.found() == Readiness(least=1, most=2, without=0, seconds=0.0)


def test_a_gap_lasts_until_the_next_pod_is_ready() -> None:
    log = Log()
    log.pod("web-0")
    log.pod("web-0", deletionTimestamp="now")
    log.gone("web-0")
    log.pod("web-1", ready=False)
    log.pod("web-1")
    log.gone("web-1")
    log.pod("web-2")
    assert log.found() == Readiness(least=0, most=1, without=2, seconds=4.0)


def test_a_gap_at_the_end_lasts_until_the_end() -> None:
    log = Log()
    log.pod("web-0", ready=False)
    log.pod("web-0")
    log.gone("web-0")
    log.passes()
    assert log.found() == Readiness(least=0, most=1, without=1, seconds=2.0)


def test_others_do_not_count() -> None:
    log = Log()
    log.pod("web-0")
    log.pod("db-0", app="db")
    log.passes()
    assert log.found() == Readiness(least=1, most=1, without=0, seconds=0.0)


def test_without_a_ready_pod_there_is_nothing_to_measure() -> None:
    log = Log()
    log.pod("web-0", ready=False)
    with pytest.raises(ValueError, match="no pod of web was ever ready"):
        log.found()
