"""The Secret with the webhooks' certificate, and the caBundle in webhook configurations."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import Metadata, WireStruct

CONFIGURATIONS = tuple(
    f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/reserver"
    for kind in ("mutating", "validating")
)
"""The paths of both webhook configurations."""

SECRET = "reserver-webhook"  # noqa: S105 - its name
_CERTIFICATE, _KEY, _CA = "tls.crt", "tls.key", "ca.crt"


class ServingPair(NamedTuple):
    """A serving certificate with its key, in PEM.

    Attributes:
        ca: the caBundle: the CA of the certificate, then the former CA.
    """

    certificate: bytes
    private_key: bytes
    ca: bytes


class SecretObject(WireStruct, frozen=True):
    """A Secret on the wire."""

    metadata: Metadata = Metadata()
    data: dict[str, str] | None = None

    def pair(self) -> ServingPair:
        """Return the certificate of the Secret.

        Raises:
            InvalidInput: a key is missing, or not base64.
        """
        data = self.data or {}
        try:
            parts = [
                base64.b64decode(data[key], validate=True) for key in (_CERTIFICATE, _KEY, _CA)
            ]
        except (KeyError, binascii.Error) as exc:
            remedy = f"delete the Secret {SECRET}, and Reserver makes another one"
            raise InvalidInput("data", f"cannot be read ({exc!r})", remedy) from exc
        return ServingPair(*parts)


def secrets_path(namespace: str, name: str = "") -> str:
    """Return the path of the Secrets of a namespace, or of one Secret."""
    return f"/api/v1/namespaces/{namespace}/secrets{'/' if name else ''}{name}"


def show_secret(namespace: str, pair: ServingPair, version: str) -> dict[str, Any]:
    """Return a Secret with a certificate; `version` is the replaced resourceVersion, or empty."""
    metadata = {"name": SECRET, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": metadata | ({"resourceVersion": version} if version else {}),
        "data": {
            key: base64.b64encode(part).decode()
            for key, part in zip((_CERTIFICATE, _KEY, _CA), pair, strict=True)
        },
    }


class _ClientConfig(WireStruct, frozen=True):
    ca_bundle: str = ""


class _Hook(WireStruct, frozen=True):
    name: str = ""
    client_config: _ClientConfig = _ClientConfig()


class ConfigurationObject(WireStruct, frozen=True):
    """A mutating or validating webhook configuration on the wire."""

    webhooks: list[_Hook] = msgspec.field(default_factory=list)

    def trusting(self, ca: bytes) -> list[dict[str, str]]:
        """Return the JSON patch that sets the caBundle of all webhooks; empty without changes."""
        bundle = base64.b64encode(ca).decode()
        return list(self._operations(bundle))

    def _operations(self, bundle: str) -> Iterable[dict[str, str]]:
        for index, hook in enumerate(self.webhooks):
            if hook.client_config.ca_bundle != bundle:
                path = f"/webhooks/{index}"
                yield {"op": "test", "path": f"{path}/name", "value": hook.name}
                yield {"op": "add", "path": f"{path}/clientConfig/caBundle", "value": bundle}
