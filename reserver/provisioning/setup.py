"""The CRD that the provisioner needs, and its events."""

from __future__ import annotations

import structlog

from reserver.base.pacer import Backoff
from reserver.errors import ApiError, ConfigurationError
from reserver.k8s.client import ApiClient
from reserver.k8s.events import Recorder
from reserver.k8s.objects.objects import ObjectKind
from reserver.provisioning.codec import API_VERSION, COLLECTION, KIND
from reserver.provisioning.model import ConditionChange, Kind
from reserver.provisioning.observe import KnownRequest

log = structlog.get_logger(__name__)

_KIND = ObjectKind(API_VERSION, KIND)


def announce(recorder: Recorder, known: KnownRequest, said: ConditionChange) -> None:
    """Write an event on a ProvisioningRequest for a condition that has become true."""
    is_good = said.kind in {Kind.ACCEPTED, Kind.PROVISIONED}
    write = recorder.note if is_good else recorder.warn
    write(known.metadata, said.kind, f"{said.reason}: {said.message}", _KIND)


async def require_crd(client: ApiClient) -> None:
    """Wait until the API server confirms that it serves ProvisioningRequests.

    Raises:
        ConfigurationError: the API server does not serve them.
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
            if exc.is_definite:  # The watch will report the missing right.
                return
            log.warning("cannot ask for ProvisioningRequests, retrying", why=str(exc))
        else:
            return
        await backoff.sleep()
