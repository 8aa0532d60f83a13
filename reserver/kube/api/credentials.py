"""Where the API server is and who Reserver is to it: kubeconfig or in-cluster service account.

The kubernetes package reads both, with every kind of user it knows (token, token file, client
certificate, exec plugin, OIDC), and renews what expires.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio import config as kubernetes_config
from kubernetes.aio.client import Configuration

from reserver.errors import ConfigurationError

_RENEWAL_S = 60


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where the API server is and who Reserver is to it.

    Attributes:
        server: base URL, no trailing slash.
        source: where this comes from, for a person.
        tls: how to verify it and what certificate to show; None over plain HTTP.
        server_name: the name to expect in its certificate, None for that of the URL.
        proxy: URL of a proxy, or None.
        namespace: of the kubeconfig's context; empty where it names none.
    """

    server: str
    source: str
    tls: ssl.SSLContext | None
    server_name: str | None
    proxy: str | None
    namespace: str
    _configuration: Any
    _loader: Any

    async def authorization(self) -> str | None:
        """Return the value of the Authorization header, renewed where it expires."""
        token = await self._configuration.get_api_key_with_prefix("BearerToken")
        return token.strip() if token else None

    async def renew(self) -> None:
        """Keep renewing what an exec plugin gave; return if there is nothing to renew."""
        if self._loader is not None:
            await kubernetes_config.kube_config.refresh_token(
                self._loader, self._configuration, _RENEWAL_S
            )


async def load(kubeconfig: Path | None, context: str = "") -> Credentials:
    """Return the credentials of a kubeconfig or, without one, those of the environment.

    Args:
        kubeconfig: the file; None for ``$KUBECONFIG``, then the service account of the pod that
            Reserver runs in, then ``~/.kube/config``.
        context: of the kubeconfig; its current one if it is empty.

    Raises:
        ConfigurationError: there are none, or they cannot be read.
    """
    configuration = Configuration()
    in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ
    in_cluster = in_cluster and not context
    source = "in-cluster service account" if kubeconfig is None and in_cluster else "kubeconfig"
    loader = None
    try:
        if kubeconfig is None and in_cluster:
            kubernetes_config.load_incluster_config(client_configuration=configuration)
        else:
            path = str(kubeconfig or os.environ.get("KUBECONFIG") or Path.home() / ".kube/config")
            source = f"kubeconfig {path}"
            _check_readable(path)
            loader = await kubernetes_config.load_kube_config(
                config_file=path,
                context=context or None,
                client_configuration=configuration,
                persist_config=False,
            )
        return Credentials(
            server=configuration.host.rstrip("/"),
            source=source,
            tls=_tls(configuration),
            server_name=configuration.tls_server_name,
            proxy=configuration.proxy,
            namespace=_namespace(loader),
            _configuration=configuration,
            _loader=loader,
        )
    except (kubernetes_config.ConfigException, yaml.YAMLError, OSError, ValueError) as exc:
        problem = " ".join(str(exc).split()) or type(exc).__name__
        raise ConfigurationError(f"{source} cannot be used: {problem}") from exc
    except (TypeError, AttributeError, KeyError) as exc:
        # What the kubernetes package raises for YAML that is not a kubeconfig.
        raise ConfigurationError(f"{source} cannot be used: it is not a kubeconfig") from exc


def _check_readable(path: str) -> None:
    """Raise if a file cannot be read; the kubernetes package skips such files."""
    for part in path.split(os.pathsep):
        if part:
            Path(part).expanduser().open("rb").close()


def _namespace(loader: Any) -> str:  # noqa: ANN401 - the kubernetes package has no types
    if loader is None:
        return ""
    return str(loader.current_context["context"].get("namespace") or "")


def _tls(configuration: Configuration) -> ssl.SSLContext | None:
    if not configuration.host.startswith("https"):
        return None
    context = ssl.create_default_context(
        cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data
    )
    # Cluster CAs made before 2025 often lack what strict mode (Python 3.13) wants of them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
