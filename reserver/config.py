"""The settings of `reserver serve`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from reserver.errors import ConfigurationError, InvalidInput
from reserver.server.tls_files import TlsFiles
from reserver.wire.k8s import names

_LAST_PORT = 65535

DEFAULT_QUOTA = (
    "reservations=100,held.cpu=8,held.memory=32Gi,held.pods=100,held.ephemeral-storage=100Gi,"
    "held.*=0,maxTTL=168h"
)
"""The quota of namespaces without one: a worker's worth, for a week at most (docs/adr/0018)."""


class ReservationStore(StrEnum):
    """Where reservations are written that clients create."""

    CONFIGMAP = "configmap"
    """In ConfigMaps: a set is one write."""

    OBJECT = "object"
    """As Reservation objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of `reserver serve`.

    Attributes:
        kubeconfig: file; None for the environment's credentials.
        bind_address: IP address to listen on; a loopback one, or with `tls` any.
        http_port: port of the extender; 0 for a free one.
        tls: serve the extender to clients with a certificate only; None for plain HTTP.
        extender_allowed_names: a client of the extender has a certificate with one of these names.
        allowed_hosts: HTTP calls may be for these hosts, too: DNS names or IP addresses.
        health_address: IP address and port to serve health and metrics on as well, over plain
            HTTP; None for nowhere else.
        grpc_address: IP address and port of the gRPC API; None for nowhere. A loopback one is in
            plain text and for whoever reaches it, any other over TLS and for whom the API server
            knows.
        grpc_tls: the files for that; with a CA of clients these need a certificate as well as a
            token.
        grpc_loopback_tls: use these on loopback, too.
        grpc_loopback_tokens: want a token on loopback, too.
        grpc_audiences: tokens have to be for one of them; empty for the API server's own.
        leader_elect: stand by while another Reserver holds the lease.
        namespace: where labelled store ConfigMaps are read.
        crd: be ready only once the API server knows Reservations; else a cluster without their CRD
            just has none.
        reservation_store: what the gRPC API creates: keys of ConfigMaps, or objects (for these the
            CRD has to be there).
        exempt_namespaces: where holds do not apply to pods of the system's priorities (from
            2,000,000,000 on).
        configmaps: further store ConfigMaps, namespace and name, label or not.
        default_quota: of namespaces without a ReservationQuota, other than `namespace` and those of
            `configmaps`, as ``NAME=LIMIT,…``; ``none`` for none.
    """

    kubeconfig: Path | None = None
    bind_address: str = "127.0.0.1"
    http_port: int = 9440
    tls: TlsFiles | None = None
    extender_allowed_names: tuple[str, ...] = ("system:kube-scheduler",)
    allowed_hosts: tuple[str, ...] = ()
    health_address: tuple[str, int] | None = None
    grpc_address: tuple[str, int] | None = None
    grpc_tls: TlsFiles | None = None
    grpc_loopback_tls: bool = False
    grpc_loopback_tokens: bool = False
    grpc_audiences: tuple[str, ...] = ()
    leader_elect: bool = False
    namespace: str = "reserver-system"
    crd: bool = False
    reservation_store: ReservationStore = ReservationStore.CONFIGMAP
    exempt_namespaces: tuple[str, ...] = ("kube-system",)
    configmaps: tuple[tuple[str, str], ...] = ()
    default_quota: str = DEFAULT_QUOTA

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigurationError: naming the setting, the value and the remedy.
        """
        if not _ip("--bind-address", self.bind_address).is_loopback and self.tls is None:
            raise ConfigurationError(
                f"--bind-address: {self.bind_address} is not a loopback address; whoever reaches "
                "the extender can bind pods, so use 127.0.0.1, or mutual TLS: "
                "--tls-cert-file, --tls-private-key-file and --extender-client-ca-file"
            )
        if not all(self.extender_allowed_names):
            raise ConfigurationError(
                "--extender-allowed-name: is empty; write a name that kube-scheduler's client "
                "certificate has, e.g. system:kube-scheduler"
            )
        if self.health_address is not None:
            _ip("--health-address", self.health_address[0])
        if self.grpc_address is not None and not self.is_grpc_local and self.grpc_tls is None:
            raise ConfigurationError(
                f"--grpc-address: {self.grpc_address[0]} is not a loopback address; callers send "
                "tokens, so use 127.0.0.1, or TLS: --tls-cert-file and --tls-private-key-file"
            )
        if self.grpc_loopback_tls and self.grpc_tls is None:
            raise ConfigurationError(
                "--grpc-loopback-tls: needs --tls-cert-file and --tls-private-key-file"
            )
        if not all(self.grpc_audiences):
            raise ConfigurationError(
                "--grpc-audience: is empty; write what tokens are made for, e.g. reserver"
            )
        exempt = (("--exempt-namespace", name) for name in self.exempt_namespaces)
        for flag, name in (("--namespace", self.namespace), *exempt, *_names(self.configmaps)):
            try:
                names.check_subdomain(name, flag, "a name of Kubernetes")
            except InvalidInput as exc:
                raise ConfigurationError(str(exc)) from exc

    @property
    def needs_crd(self) -> bool:
        """Whether nothing is decided before the API server knows Reservations."""
        return self.crd or self.reservation_store is ReservationStore.OBJECT

    @property
    def is_grpc_local(self) -> bool:
        """Whether only this machine, or this pod, reaches the gRPC API."""
        host = self.grpc_address[0] if self.grpc_address else "127.0.0.1"
        return _ip("--grpc-address", host).is_loopback

    @property
    def wants_grpc_tokens(self) -> bool:
        """Whether callers of the gRPC API have to say who they are."""
        return self.grpc_loopback_tokens or not self.is_grpc_local

    @property
    def served_grpc_tls(self) -> TlsFiles | None:
        """The files that the gRPC API is served with; None for plain text."""
        return self.grpc_tls if self.grpc_loopback_tls or not self.is_grpc_local else None


def _ip(flag: str, text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError as exc:
        problem = f"{flag}: {text!r} is not an IP address"
        raise ConfigurationError(f"{problem}; write 127.0.0.1 or ::1") from exc


def parse_address(text: str, flag: str = "--health-address") -> tuple[str, int]:
    """Return IP address and port of ``ADDRESS:PORT``, the address of IPv6 in brackets.

    Args:
        text: what was given.
        flag: by which flag.

    Raises:
        ConfigurationError: it is not of that form.
    """
    address, colon, port = text.rpartition(":")
    if not (colon and port.isascii() and port.isdecimal() and int(port[:6]) <= _LAST_PORT):
        remedy = "write ADDRESS:PORT, e.g. 0.0.0.0:9441"
        raise ConfigurationError(f"{flag}: {text!r} is not an address; {remedy}")
    return address.removeprefix("[").removesuffix("]"), int(port)


def parse_tls(
    certificate: Path | None,
    private_key: Path | None,
    extender_ca: Path | None,
    grpc_ca: Path | None,
) -> tuple[TlsFiles | None, TlsFiles | None]:
    """Return the files for the extender, None for plain HTTP, and those for the gRPC API.

    A CA of its own for each: whoever may call the gRPC API may not bind pods by that.

    Raises:
        ConfigurationError: some are given and others not.
    """
    files = {"--tls-cert-file": certificate, "--tls-private-key-file": private_key}
    if certificate and private_key:
        extender = TlsFiles(certificate, private_key, extender_ca) if extender_ca else None
        return extender, TlsFiles(certificate, private_key, grpc_ca)
    if any((certificate, private_key, extender_ca, grpc_ca)):
        missing = ", ".join(flag for flag, file in files.items() if not file)
        raise ConfigurationError(f"{missing}: missing; TLS needs a certificate and its key")
    return None, None


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
