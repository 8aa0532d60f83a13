"""Whether the API server knows ProvisioningRequests."""

from __future__ import annotations

import structlog

from reserver.base.backoff import Backoff
from reserver.errors import ApiError, ConfigurationError
from reserver.k8s.client import ApiClient
from reserver.provisioning.codec import API_VERSION, COLLECTION

log = structlog.get_logger(__name__)


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
