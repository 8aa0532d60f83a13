"""Assembles what carries out ProvisioningRequests, if it is enabled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from reserver.k8s.client import ApiClient
from reserver.k8s.events import Recorder
from reserver.k8s.objects.objects import ObjectKind
from reserver.provisioning import codec
from reserver.provisioning.booking import Booking
from reserver.provisioning.controller import Provisioner
from reserver.provisioning.model import ConditionChange, Kind
from reserver.provisioning.observe import KnownRequest
from reserver.scheduling.state import State
from reserver.stores.object.cache import ObjectCache
from reserver.stores.writer import Writer

_KIND = ObjectKind(codec.API_VERSION, codec.KIND)


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


def announce(recorder: Recorder, known: KnownRequest, said: ConditionChange) -> None:
    """Report on a ProvisioningRequest a condition that has become true."""
    is_good = said.kind in {Kind.ACCEPTED, Kind.PROVISIONED}
    write = recorder.note if is_good else recorder.warn
    write(known.metadata, said.kind, f"{said.reason}: {said.message}", _KIND)
