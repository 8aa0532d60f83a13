"""Assembles what carries out ProvisioningRequests, if it is enabled and their CRD is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from reserver.base.pacer import Backoff
from reserver.errors import ApiError, ConfigurationError
from reserver.k8s.client import ApiClient
from reserver.k8s.events import Recorder
from reserver.k8s.objects.objects import ObjectKind
from reserver.provisioning.booking import Booking
from reserver.provisioning.codec import API_VERSION, COLLECTION, KIND
from reserver.provisioning.controller import Provisioner
from reserver.provisioning.model import ConditionChange, Kind
from reserver.provisioning.observe import KnownRequest
from reserver.scheduling.state import State
from reserver.stores.object.cache import ObjectCache
from reserver.stores.writer import Writer

log = structlog.get_logger(__name__)

_KIND = ObjectKind(API_VERSION, KIND)


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


async def require_crd(client: ApiClient) -> None:
    """Return once the API server has said that it knows ProvisioningRequests.

    Raises:
        ConfigurationError: it does not.
    """
    backoff = Backoff(0.2, 5.0)
    while True:
        try:
            await client.get(COLLECTION, {"limit": "1"})
        except ApiError as exc:
            if exc.is_absent:
                problem = f"the API server does not know provisioningrequests of {API_VERSION}"
                remedy = (
                    "install their CRD (cluster-autoscaler/apis/config/crd of "
                    "github.com/kubernetes/autoscaler), or leave out the flag"
                )
                raise ConfigurationError(f"--provisioning-requests: {problem}; {remedy}") from exc
            if exc.is_definite:  # The watch will say what lacks.
                return
            log.warning("cannot ask for ProvisioningRequests, retrying", why=str(exc))
        else:
            return
        await backoff.sleep()
