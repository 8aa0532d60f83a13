"""Reads the Pods and Reservations of `reserver rebalance plan --make-room --pods FILE`.

A slot of a Reservation counts as a pod of what it holds, where its node or placement lets it be.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace

from reserver.cli.documents import Document, read_files
from reserver.cli.failure import Failed, Status
from reserver.cli.wanted import wanted
from reserver.cluster.pod import Pod
from reserver.errors import InvalidInput
from reserver.rebalance.pending import Slots
from reserver.reservations.reservation import Ref
from reserver.wire.rebalance.pods import read_pod
from reserver.wire.spec import specform

_UNNAMED = "reservation"


def read(name: str) -> list[Pod]:
    """Return the pods that a file asks room for.

    Raises:
        Failed: it cannot be read, or some of it is neither a Pod nor a Reservation.
    """
    found: list[Pod] = []
    for document in read_files([name]):
        try:
            found += _pods(document)
        except InvalidInput as exc:
            raise Failed(Status.REFUSED, f"{document.where}: {exc}") from exc
    return found


def _pods(document: Document) -> Iterator[Pod]:
    if document.kind != "Pod":
        yield from _slots(document)
        return
    pod = read_pod(json.dumps(document.value).encode()).pod
    if not pod.name.name:
        raise InvalidInput("metadata.name", "is empty", "every pod has a name")
    yield replace(pod, uid=f"wanted {pod.name}", node="")


def _slots(document: Document) -> Iterator[Pod]:
    found, problems = wanted([document], _UNNAMED)
    if problems:
        raise problems[0][1]
    (asked,) = found
    namespace = asked.namespace or "default"
    try:
        ref = Ref.of_object(namespace, asked.name)
        reservation = specform.read(asked.spec, ref, time.time())
    except InvalidInput as exc:
        raise exc.under(asked.path) if asked.path else exc from exc
    yield from Slots.of(reservation, asked.name).pods()
