"""Assembles what carries out ProvisioningRequests, if it is enabled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from reserver.kube.api.client import ApiClient
from reserver.kube.loops.events import Recorder
from reserver.kube.provisioning.booking import Booking
from reserver.kube.provisioning.provisioner import Provisioner
from reserver.kube.provisioning.requests import KnownRequest
from reserver.kube.stores.object.cache import ObjectCache
from reserver.kube.stores.writer import Writer
from reserver.provisioning.request import Kind, Said
from reserver.scheduling.state import State
from reserver.wire.k8s.objects import ObjectKind
from reserver.wire.provisioning import requestform

_KIND = ObjectKind(requestform.API_VERSION, requestform.KIND)


def assembled(
    client: ApiClient,
    clock: Callable[[], float],
    state: State,
    objects: ObjectCache,
    writer: Writer[Any],
    is_up_to_date: Callable[[], Awaitable[bool]],
) -> Provisioner:
    """Return what carries out ProvisioningRequests by Reservation objects."""
    booking = Booking(client, clock, state, objects, writer)
    return Provisioner(client, clock, booking, is_up_to_date)


def announce(recorder: Recorder, known: KnownRequest, said: Said) -> None:
    """Report on a ProvisioningRequest a condition that has become true."""
    is_good = said.kind in {Kind.ACCEPTED, Kind.PROVISIONED}
    write = recorder.note if is_good else recorder.warn
    write(known.metadata, said.kind, f"{said.reason}: {said.message}", _KIND)
