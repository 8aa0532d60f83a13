"""Settings of an installation: namespace, listeners, access, stores and accounting."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from reserver.errors import ConfigurationError
from reserver.http.tls_files import TlsFiles
from reserver.settings.flags import (
    LAST_PORT,
    InFile,
    check_given,
    check_host,
    check_name,
    check_percent,
    parse_address,
    parse_ip,
    setting,
)
from reserver.stores.codec import prices

_address = partial(setting, panel="Addresses")
_listener = partial(_address, metavar="ADDRESS:PORT", read=parse_address, check=check_host)
_credential = partial(setting, panel="Certificates and tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """The listeners of the extender, the gRPC API, the webhooks and health.

    `Settings` inherits these settings and checks them.
    """

    bind_address: str = _address(
        "IP of the extender: loopback, or any with mutual TLS.", default="127.0.0.1", check=parse_ip
    )
    http_port: int = _address("Port of the extender; 0: a free one.", default=9440, most=LAST_PORT)
    tls_cert_file: Path | None = _credential(
        "Certificate chain (PEM) of the extender and the gRPC API."
    )
    tls_private_key_file: Path | None = _credential("Its key (PEM).")
    extender_client_ca_file: Path | None = _credential(
        "CAs (PEM) of the extender's clients, for mutual TLS. Default: HTTP on loopback."
    )
    extender_allowed_names: tuple[str, ...] = _credential(
        "Certificate name of an allowed client of the extender: CN, DNS name or URI.",
        default=("system:kube-scheduler",),
        metavar="NAME",
        check=check_given,
    )
    allowed_hosts: tuple[str, ...] = _address(
        "Other host name in kube-scheduler's urlPrefix.", default=(), metavar="HOST"
    )
    health_address: tuple[str, int] | None = _listener(
        "Serve health and metrics over plain HTTP, too, e.g. 0.0.0.0:9441."
    )
    metrics_address: tuple[str, int] | None = _listener(
        "Serve metrics and /configz over TLS, e.g. 0.0.0.0:9442, to tokens that may get these "
        "paths; --health-address has no metrics then."
    )
    profiling: bool = setting(
        "Serve /debug/profile beside /configz: the event loop's stacks.",
        default=False,
        in_file=InFile("enableProfiling", keeps_flag=True),
    )
    grpc_address: tuple[str, int] | None = _listener(
        "Serve the gRPC API, e.g. 127.0.0.1:9443. Beyond loopback it uses TLS and tokens of "
        "the API server."
    )
    grpc_client_ca_file: Path | None = _credential(
        "CAs (PEM) of gRPC clients: certificates beside tokens."
    )
    grpc_loopback_tls: bool = _credential(
        "Use TLS for the gRPC API on loopback, too.", default=False
    )
    grpc_loopback_tokens: bool = _credential(
        "Require tokens of gRPC clients on loopback, too.", default=False
    )
    grpc_audiences: tuple[str, ...] = _credential(
        "Audience of clients' tokens. Default: the API server's own.",
        default=(),
        metavar="AUDIENCE",
        check=check_given,
    )
    webhook_address: tuple[str, int] | None = _listener(
        "Serve webhooks (SchedPatches, resizes) over TLS, e.g. 0.0.0.0:9444."
    )
    webhook_cert_file: Path | None = _credential(
        "Certificate (PEM) of the webhooks. Default: Reserver makes one."
    )
    webhook_private_key_file: Path | None = _credential("Its key (PEM).")

    def check_listening(self) -> None:
        """Refuse settings that exclude each other.

        Raises:
            ConfigurationError: some do; the error names the setting, the value and the remedy.
        """
        self._check_files()
        if not parse_ip("", self.bind_address).is_loopback and self.tls is None:
            raise ConfigurationError(
                f"--bind-address: {self.bind_address} is not a loopback address; whoever reaches "
                "the extender can bind pods, so use 127.0.0.1, or mutual TLS: "
                "--tls-cert-file, --tls-private-key-file and --extender-client-ca-file"
            )
        if self.grpc_address is not None and not self.is_grpc_local and self._grpc_tls is None:
            raise ConfigurationError(
                f"--grpc-address: {self.grpc_address[0]} is not a loopback address; callers send "
                "tokens, so use 127.0.0.1, or TLS: --tls-cert-file and --tls-private-key-file"
            )
        if self.metrics_address is not None and self.metrics_tls is None:
            raise ConfigurationError(
                "--metrics-address: needs --tls-cert-file and --tls-private-key-file, for callers "
                "send tokens"
            )
        if self.grpc_loopback_tls and self._grpc_tls is None:
            raise ConfigurationError(
                "--grpc-loopback-tls: needs --tls-cert-file and --tls-private-key-file"
            )

    def _check_files(self) -> None:
        files = {
            "--tls-cert-file": self.tls_cert_file,
            "--tls-private-key-file": self.tls_private_key_file,
        }
        given = (*files.values(), self.extender_client_ca_file, self.grpc_client_ca_file)
        if any(given) and not all(files.values()):
            missing = ", ".join(flag for flag, file in files.items() if not file)
            raise ConfigurationError(f"{missing}: missing; TLS needs a certificate and its key")

        if bool(self.webhook_cert_file) != bool(self.webhook_private_key_file):
            raise ConfigurationError(
                "--webhook-cert-file and --webhook-private-key-file: one is missing; give both, or "
                "none, and Reserver makes a certificate"
            )

    def _tls(self, client_ca: Path | None) -> TlsFiles | None:
        if self.tls_cert_file is None or self.tls_private_key_file is None:
            return None
        return TlsFiles(self.tls_cert_file, self.tls_private_key_file, client_ca)

    @property
    def tls(self) -> TlsFiles | None:
        """The extender's files; None for plain HTTP.

        The gRPC API has another client CA, so that its clients cannot bind pods.
        """
        ca = self.extender_client_ca_file
        return self._tls(ca) if ca else None

    @property
    def all_tls(self) -> tuple[TlsFiles | None, ...]:
        """The files of all listeners; None for plain text, or a certificate made by Reserver."""
        return self.tls, self.grpc_tls, self.webhook_tls, self.metrics_tls

    @property
    def metrics_tls(self) -> TlsFiles | None:
        """The files of the metrics listener; None if metrics are not served over TLS."""
        return self._tls(None) if self.metrics_address else None

    @property
    def _grpc_tls(self) -> TlsFiles | None:
        return self._tls(self.grpc_client_ca_file)

    @property
    def grpc_tls(self) -> TlsFiles | None:
        """The files of the gRPC API; None for plain text."""
        return self._grpc_tls if self.grpc_loopback_tls or not self.is_grpc_local else None

    @property
    def webhook_tls(self) -> TlsFiles | None:
        """The files of the webhooks; None for a certificate made by Reserver."""
        if self.webhook_cert_file is None or self.webhook_private_key_file is None:
            return None
        return TlsFiles(self.webhook_cert_file, self.webhook_private_key_file)

    @property
    def is_grpc_local(self) -> bool:
        """Whether the gRPC API listens on loopback only."""
        host = self.grpc_address[0] if self.grpc_address else "127.0.0.1"
        return parse_ip("--grpc-address", host).is_loopback

    @property
    def wants_grpc_tokens(self) -> bool:
        """Whether callers of the gRPC API need a token."""
        return self.grpc_loopback_tokens or not self.is_grpc_local


_file = partial(setting, panel="Configuration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting(Listening):
    """The settings for reports and prices of the use of holds."""

    warn_use_below: str = setting(
        "The share of a hold, such as 20%, below which its use in 24 hours is reported; none: "
        "never.",
        default="20%",
        metavar="PERCENT",
        check=check_percent,
        in_file=InFile("warnUseBelow", is_live=True),
    )
    prices: str = setting(
        "Price of an hour of a core, a GiB or a piece, such as cpu=0.03,currency=EUR.",
        default=prices.NONE,
        metavar="TABLE",
        check=prices.check,
        in_file=InFile("prices", is_live=True, read=prices.read_table, show=prices.show_table),
    )


def _parse_configmap(flag: str, text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        problem = f"{flag}: {text!r} is not of the form NAMESPACE/NAME"
        raise ConfigurationError(f"{problem}; write e.g. shop/holds")
    return namespace, name


def _parse_controller(flag: str, text: str) -> tuple[str, str]:
    version, _, kind = text.rpartition("/")
    if not re.fullmatch(r"[a-z0-9.-]{1,253}/v[a-z0-9]{1,62}/[A-Za-z0-9]{1,63}", text):
        problem = f"{flag}: {text!r} is not of the form APIVERSION/KIND"
        raise ConfigurationError(f"{problem}; write e.g. apps.kruise.io/v1alpha1/DaemonSet")
    return version, kind


def _check_names(flag: str, parts: tuple[str, str]) -> None:
    for name in parts:
        check_name(flag, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation(Accounting):
    """The settings of an installation: configuration, namespace and stores.

    Attributes:
        given: the fields set by a flag or a variable.
    """

    given: frozenset[str] = field(default=frozenset(), repr=False)
    config: Path | None = _file(
        "ReserverConfiguration (docs/configuration.md), read again when it changes."
    )
    kubeconfig: Path | None = _file(
        "Default: $KUBECONFIG, the pod's service account, ~/.kube/config."
    )
    leader_elect: bool = setting(
        "Stand by while another Reserver holds the Lease of this namespace.",
        default=False,
        in_file=InFile("leaderElection.leaderElect"),
    )
    pod_name: str = _file(
        "Own pod, which a leader labels reserver.io/serving.", default="", metavar="NAME"
    )
    namespace: str = _file(
        'Namespace whose ConfigMaps labelled reserver.io/store: "true" are stores.',
        default="reserver-system",
        metavar="NAME",
        check=check_name,
    )
    configmaps: tuple[tuple[str, str], ...] = setting(
        "Another store ConfigMap, with the label or without.",
        default=(),
        metavar="NAMESPACE/NAME",
        read=_parse_configmap,
        check=_check_names,
        in_file=InFile("storeConfigMaps"),
    )
    exempt_namespaces: tuple[str, ...] = setting(
        "Another namespace, beside kube-system, whose pods of system priority (2,000,000,000 "
        "and above) may take held room.",
        default=(),
        metavar="NAMESPACE",
        check=check_name,
        in_file=InFile("exemptNamespaces", is_live=True),
    )
    daemon_controllers: tuple[tuple[str, str], ...] = setting(
        "Another kind of controller whose pods belong to their node, as those of DaemonSets do: "
        "they may be on nodes that are held whole. Its CRD has to be installed.",
        default=(),
        metavar="APIVERSION/KIND",
        read=_parse_controller,
        in_file=InFile("daemonControllers"),
    )
    crd: bool = setting(
        "Be ready only once the CRD reservations.reserver.io exists.",
        default=True,
        in_file=InFile("requireCRD"),
    )
