"""The settings of `reserver serve`: what each means, and which values cannot work."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

from reserver.errors import ConfigurationError, InvalidInput
from reserver.flags import (
    LAST_PORT,
    Flag,
    check_given,
    check_host,
    check_name,
    declared,
    parse_address,
    parse_ip,
    parse_seconds,
)
from reserver.rebalance.ways import Compat, Mode, check_making_room
from reserver.reservations.terms import StoreKind
from reserver.server.tls_files import TlsFiles

DEFAULT_QUOTA = (
    "reservations=100,held.cpu=8,held.memory=32Gi,held.pods=100,held.ephemeral-storage=100Gi,"
    "held.*=0,maxTTL=168h"
)
"""The quota of namespaces without one: a worker's worth, for a week at most (docs/adr/0018)."""


WEBHOOK_SERVICE = "reserver-webhook"
"""Name of the Service that API servers call the webhooks by."""


class LogLevel(StrEnum):
    """From which level on log lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def _parse_configmap(flag: str, text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise ConfigurationError(f"{flag}: {text!r} is not of the form NAMESPACE/NAME")
    return namespace, name


def _check_names(flag: str, parts: tuple[str, str]) -> None:
    for name in parts:
        check_name(flag, name)


_setting = partial(Flag, in_environment=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of `reserver serve`: the flags of the same names, of which lists are the plural.

    Raises:
        ConfigurationError: some cannot work; it names the setting, the value and the remedy.
    """

    kubeconfig: Annotated[
        Path | None, _setting("Default: $KUBECONFIG, the pod's service account, ~/.kube/config.")
    ] = None
    bind_address: Annotated[
        str,
        _setting(
            "IP address to listen on: a loopback one, or any with mutual TLS.", check=parse_ip
        ),
    ] = "127.0.0.1"
    http_port: Annotated[int, _setting("Port of the extender; 0: a free one.", most=LAST_PORT)] = (
        9440
    )
    tls_cert_file: Annotated[
        Path | None,
        _setting("PEM file with the certificate chain of the extender and the gRPC API."),
    ] = None
    tls_private_key_file: Annotated[
        Path | None, _setting("PEM file with the certificate's key.")
    ] = None
    extender_client_ca_file: Annotated[
        Path | None,
        _setting(
            "PEM file with the CAs of the extender's clients. With it, the extender requires "
            "mutual TLS; without it, it serves plain HTTP on loopback."
        ),
    ] = None
    extender_allowed_names: Annotated[
        tuple[str, ...],
        _setting(
            "Who may call the extender: a common name, DNS name or URI of the client's "
            "certificate.",
            metavar="NAME",
            check=check_given,
        ),
    ] = ("system:kube-scheduler",)
    allowed_hosts: Annotated[
        tuple[str, ...],
        _setting(
            "Another host name that HTTP calls may use, such as that of kube-scheduler's urlPrefix "
            "where it is not a loopback address.",
            metavar="HOST",
        ),
    ] = ()
    health_address: Annotated[
        tuple[str, int] | None,
        _setting(
            "Also serve health and metrics here, over plain HTTP, e.g. 0.0.0.0:9441.",
            metavar="ADDRESS:PORT",
            read=parse_address,
            check=check_host,
        ),
    ] = None
    grpc_address: Annotated[
        tuple[str, int] | None,
        _setting(
            "Serve the gRPC API here, e.g. 127.0.0.1:9443. Beyond loopback it uses TLS, and "
            "callers need a token of the API server.",
            metavar="ADDRESS:PORT",
            read=parse_address,
            check=check_host,
        ),
    ] = None
    grpc_client_ca_file: Annotated[
        Path | None,
        _setting("PEM file with CAs. gRPC clients need a certificate of one, as well as a token."),
    ] = None
    webhook_address: Annotated[
        tuple[str, int] | None,
        _setting(
            "Serve the webhooks for SchedPatches and resizes of pods here over TLS, e.g. "
            "0.0.0.0:9444.",
            metavar="ADDRESS:PORT",
            read=parse_address,
            check=check_host,
        ),
    ] = None
    webhook_cert_file: Annotated[
        Path | None,
        _setting(
            "PEM file with the webhooks' certificate, for reserver-webhook.NAMESPACE.svc. Default: "
            "Reserver makes one, and has the API server trust it."
        ),
    ] = None
    webhook_private_key_file: Annotated[
        Path | None, _setting("PEM file with the key of the webhooks' certificate.")
    ] = None
    grpc_loopback_tls: Annotated[bool, _setting("Use TLS for the gRPC API on loopback, too.")] = (
        False
    )
    grpc_loopback_tokens: Annotated[
        bool, _setting("Require tokens of gRPC clients on loopback, too.")
    ] = False
    grpc_audiences: Annotated[
        tuple[str, ...],
        _setting(
            "Audience that tokens must be for. Default: the API server's own.",
            metavar="AUDIENCE",
            check=check_given,
        ),
    ] = ()
    leader_elect: Annotated[
        bool, _setting("Stand by while another Reserver holds the Lease of this namespace.")
    ] = False
    namespace: Annotated[
        str,
        _setting(
            'Namespace whose ConfigMaps labelled reserver.io/store: "true" are stores.',
            check=check_name,
        ),
    ] = "reserver-system"
    configmaps: Annotated[
        tuple[tuple[str, str], ...],
        _setting(
            "Another store ConfigMap, with the label or without.",
            metavar="NAMESPACE/NAME",
            read=_parse_configmap,
            check=_check_names,
        ),
    ] = ()
    exempt_namespaces: Annotated[
        tuple[str, ...],
        _setting(
            "Another namespace, beside kube-system, whose pods of system priority (2,000,000,000 "
            "and above) may take held room.",
            metavar="NAMESPACE",
            check=check_name,
        ),
    ] = ()
    crd: Annotated[
        bool,
        _setting("Be ready only once the CRD reservations.reserver.io exists."),
    ] = False
    pod_moves: Annotated[
        bool,
        _setting(
            "Carry out PodMoves, which evict pods. Needs the CRD and the rights of "
            "scheduler-config/components/moves."
        ),
    ] = False
    keep_held_nodes: Annotated[
        bool,
        _setting(
            "Annotate nodes that hold reservations, so that autoscalers keep them. Needs the "
            "rights of scheduler-config/components/autoscalers."
        ),
    ] = False
    provisioning_requests: Annotated[
        bool,
        _setting(
            "Hold room for the pods of ProvisioningRequests (autoscaling.x-k8s.io) of the class "
            "hold.reserver.io. Needs their CRD, the CRD of Reservations and the rights of "
            "scheduler-config/components/provisioning."
        ),
    ] = False
    capacity_buffers: Annotated[
        bool,
        _setting(
            "Write a CapacityBuffer for each reservation that finds no place, and for each pod "
            "that only holds keep out, so that autoscalers add nodes. Needs --keep-held-nodes, the "
            "CRD and the rights of scheduler-config/components/capacity-buffers."
        ),
    ] = False
    tracing: Annotated[
        bool,
        _setting(
            "Send OpenTelemetry traces of calls and moves to OTEL_EXPORTER_OTLP_ENDPOINT. Needs "
            "reserver[tracing]."
        ),
    ] = False
    reservation_store: Annotated[
        StoreKind,
        _setting(
            "What the gRPC API creates: keys of ConfigMaps, or Reservation objects, which need the "
            "CRD."
        ),
    ] = StoreKind.CONFIGMAP
    default_quota: Annotated[
        str,
        _setting(
            "What the reservations of a namespace without a ReservationQuota may hold; none: "
            "anything. It does not count in --namespace and the namespaces of --configmap.",
            metavar="NAME=LIMIT,…",
        ),
    ] = DEFAULT_QUOTA
    history_ttl: Annotated[
        float,
        _setting(
            "How long to remember reservations that are over; 0: not at all. Default: 7d.",
            metavar="DURATION",
            read=parse_seconds,
        ),
    ] = 7 * 86_400.0
    rebalance_policy: Annotated[
        Path | None,
        _setting(
            "Also rebalance by this policy of the descheduler, in a process beside this one. The "
            "file is read again before each round."
        ),
    ] = None
    rebalance_make_room: Annotated[
        bool,
        _setting(
            "Also rebalance to make room for pending pods that fit nowhere, instead of following "
            "the policy, whose first profile still says which pods may be evicted. Needs "
            "--rebalance-mode reserve-first."
        ),
    ] = False
    rebalance_interval: Annotated[
        float,
        _setting(
            "Time from the start of a round to the next. Default: 5m.",
            metavar="DURATION",
            read=parse_seconds,
        ),
    ] = 300.0
    rebalance_compat: Annotated[
        Compat, _setting("Judge the policy as one plan, or pod by pod as the descheduler does.")
    ] = Compat.SOUND
    rebalance_mode: Annotated[
        Mode,
        _setting(
            "Evict pods, or write PodMoves, which evict no pod before its replacement has a seat. "
            "reserve-first needs --pod-moves."
        ),
    ] = Mode.EVICT_ONLY
    rebalance_dry_run: Annotated[
        bool, _setting("Log what would be evicted, and evict nothing.")
    ] = False
    warn_before_expiry: Annotated[
        float,
        _setting(
            "How long before its expiry to warn of a hold that nobody has claimed; 0: never. "
            "Default: 10m.",
            metavar="DURATION",
            read=parse_seconds,
        ),
    ] = 600.0
    log_level: Annotated[LogLevel, _setting("Lowest level to log; debug shows each refusal.")] = (
        LogLevel.INFO
    )

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        for each in declared(self):
            try:
                each.check(getattr(self, each.field))
            except InvalidInput as exc:
                raise ConfigurationError(str(exc)) from exc
        self._check_tls()
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
        if self.capacity_buffers and not self.keep_held_nodes:
            raise ConfigurationError(
                "--capacity-buffers: needs --keep-held-nodes; else autoscalers remove the node "
                "that they made for a reservation as soon as it is held"
            )
        if self.rebalance_make_room:
            check_making_room("--rebalance-", self.rebalance_compat, self.rebalance_mode)
        if self.rebalance_mode is Mode.RESERVE_FIRST and not self.pod_moves:
            raise ConfigurationError(
                "--rebalance-mode: reserve-first writes PodMoves, which nobody carries out; add "
                "--pod-moves, or write evict-only"
            )
        if self.grpc_loopback_tls and self._grpc_tls is None:
            raise ConfigurationError(
                "--grpc-loopback-tls: needs --tls-cert-file and --tls-private-key-file"
            )

    def _check_tls(self) -> None:
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

        A CA of its own for each: whoever may call the gRPC API may not bind pods by that.
        """
        ca = self.extender_client_ca_file
        return self._tls(ca) if ca else None

    @property
    def _grpc_tls(self) -> TlsFiles | None:
        return self._tls(self.grpc_client_ca_file)

    @property
    def grpc_tls(self) -> TlsFiles | None:
        """The files that the gRPC API is served with; None for plain text."""
        return self._grpc_tls if self.grpc_loopback_tls or not self.is_grpc_local else None

    @property
    def webhook_tls(self) -> TlsFiles | None:
        """The files that the webhooks are served with; None where Reserver makes them."""
        if self.webhook_cert_file is None or self.webhook_private_key_file is None:
            return None
        return TlsFiles(self.webhook_cert_file, self.webhook_private_key_file)

    @property
    def webhook_names(self) -> tuple[str, ...]:
        """The hosts that the webhooks are called by: their Service, and an address if given."""
        address = self.webhook_address[0] if self.webhook_address else "0.0.0.0"  # noqa: S104
        names = (f"{WEBHOOK_SERVICE}.{self.namespace}.svc",)
        is_any = parse_ip("--webhook-address", address).is_unspecified
        return names if is_any else (*names, address)

    @property
    def needs_crd(self) -> bool:
        """Whether nothing is decided before the API server knows Reservations."""
        writes_objects = self.reservation_store is StoreKind.OBJECT
        return self.crd or writes_objects or self.provisioning_requests

    @property
    def is_grpc_local(self) -> bool:
        """Whether only this machine, or this pod, reaches the gRPC API."""
        host = self.grpc_address[0] if self.grpc_address else "127.0.0.1"
        return parse_ip("--grpc-address", host).is_loopback

    @property
    def wants_grpc_tokens(self) -> bool:
        """Whether callers of the gRPC API have to say who they are."""
        return self.grpc_loopback_tokens or not self.is_grpc_local
