"""The settings of `reserver serve`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from reserver.errors import ConfigurationError, InvalidInput
from reserver.wire import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of `reserver serve`.

    Attributes:
        kubeconfig: file; None for the environment's credentials.
        bind_address: IP address to listen on; a loopback one.
        http_port: port of the extender; 0 for a free one.
        namespace: where labelled store ConfigMaps are read.
        configmaps: further store ConfigMaps, namespace and name, label or not.
    """

    kubeconfig: Path | None = None
    bind_address: str = "127.0.0.1"
    http_port: int = 9440
    namespace: str = "reserver-system"
    configmaps: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigurationError: naming the setting, the value and the remedy.
        """
        try:
            address = ipaddress.ip_address(self.bind_address)
        except ValueError as exc:
            problem = f"--bind-address: {self.bind_address!r} is not an IP address"
            raise ConfigurationError(f"{problem}; write 127.0.0.1 or ::1") from exc
        if not address.is_loopback:
            raise ConfigurationError(
                f"--bind-address: {self.bind_address} is not a loopback address; whoever reaches "
                "the extender can bind pods, so run it beside kube-scheduler and use 127.0.0.1"
            )
        for flag, name in (("--namespace", self.namespace), *_names(self.configmaps)):
            try:
                names.check_subdomain(name, flag, "a name of Kubernetes")
            except InvalidInput as exc:
                raise ConfigurationError(str(exc)) from exc


def _names(configmaps: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return (("--configmap", part) for configmap in configmaps for part in configmap)


def parse_configmap(text: str) -> tuple[str, str]:
    """Return namespace and name of ``NAMESPACE/NAME``.

    Raises:
        ConfigurationError: it is not of that form.
    """
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise ConfigurationError(f"--configmap: {text!r} is not of the form NAMESPACE/NAME")
    return namespace, name
