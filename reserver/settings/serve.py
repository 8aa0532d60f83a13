"""The settings of `reserver serve`: their descriptions, defaults and checks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reserver.errors import ConfigurationError, InvalidInput
from reserver.k8s.objects import move_windows
from reserver.reservations.enums import StoreKind
from reserver.settings.flags import (
    NO_PERCENT,
    InFile,
    Stage,
    check_duration,
    check_percent,
    declared,
    parse_ip,
    parse_seconds,
    setting,
)
from reserver.settings.installation import Installation
from reserver.stores.quota_codec import read_default, show_default

MOST_MIGRATING = 100_000
"""The largest limit on moves in progress."""


def _check_limit(flag: str, most: int) -> None:
    if not 0 <= most <= MOST_MIGRATING:
        raise ConfigurationError(f"{flag}: {most} is no limit; write 0 to {MOST_MIGRATING}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSettings(Installation):
    """The settings for PodMoves: feature gates, windows and limits.

    Koordinator's MigrationController has the same names of limits.
    """

    pod_moves: bool = setting(
        "Carry out PodMoves, which evict pods. Needs the CRD and the rights of "
        "scheduler-config/components/moves.",
        default=False,
        in_file=InFile("featureGates.PodMoves", stage=Stage.BETA),
    )
    surge_moves: bool = setting(
        "Carry out PodMoves of mode SurgeFirst, which make copies of pods. Needs --pod-moves "
        "and the rights of scheduler-config/components/surge.",
        default=False,
        in_file=InFile("featureGates.SurgeMoves", stage=Stage.ALPHA),
    )
    move_windows: str = setting(
        "Windows in which PodMoves may evict pods: a list, each with cron, duration, timeZone, "
        "namespaceSelector and nodeSelector. Default: at any time.",
        default="[]",
        metavar="JSON",
        check=move_windows.check,
        in_file=InFile(
            "moveWindows", is_live=True, read=move_windows.read_list, show=move_windows.show_list
        ),
    )
    max_migrating_per_node: int = setting(
        "Pods of a namespace that leave a node at once, of all namespaces less than twice as "
        "many; 0: no limit.",
        default=2,
        most=MOST_MIGRATING,
        check=_check_limit,
        in_file=InFile("moveLimits.maxMigratingPerNode", is_live=True),
    )
    max_migrating_per_namespace: int = setting(
        "Pods of a namespace that are moved at once; 0: no limit.",
        default=0,
        most=MOST_MIGRATING,
        check=_check_limit,
        in_file=InFile("moveLimits.maxMigratingPerNamespace", is_live=True),
    )
    max_migrating_globally: int = setting(
        "Pods moved at once; two minutes overdue, they count in their namespace; 0: no limit.",
        default=0,
        most=MOST_MIGRATING,
        check=_check_limit,
        in_file=InFile("moveLimits.maxMigratingGlobally", is_live=True),
    )
    max_migrating_per_workload: str = setting(
        "Pods of a workload that are moved at once, at least one: a share, such as 10%; none: "
        "1 of fewer than 4, 2 of up to 10, a tenth of more.",
        default=NO_PERCENT,
        metavar="PERCENT",
        check=check_percent,
        in_file=InFile("moveLimits.maxMigratingPerWorkload", is_live=True),
    )


DEFAULT_QUOTA = (
    "reservations=100,held.cpu=8,held.memory=32Gi,held.pods=100,held.ephemeral-storage=100Gi,"
    "held.*=0,maxTTL=168h"
)
"""The quota of namespaces without their own: one worker node for at most a week (docs/adr/0018)."""

CEILING = "80%"
"""The share of the cluster that all tenants together may hold (docs/adr/0072): far more than a
packed cluster has free, and never the whole cluster."""

WEBHOOK_SERVICE = "reserver-webhook"
"""The name of the Service of the webhooks."""


class LogLevel(StrEnum):
    """The lowest level of the log lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """The form of log lines."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(MoveSettings):
    """The settings of `reserver serve`: flags of the same names; lists have the plural.

    `configuration.merged` adds the fields of the file `config`.

    Raises:
        ConfigurationError: a value is invalid; it names the setting, the value and the remedy.
    """

    maintenance_windows: bool = setting(
        "Carry out MaintenanceWindows, which cordon nodes and empty them by PodMoves. Needs "
        "--pod-moves, the CRD and the rights of scheduler-config/components/maintenance.",
        default=False,
        in_file=InFile("featureGates.MaintenanceWindows", stage=Stage.ALPHA),
    )
    replace_not_ready_after: float = setting(
        "Time for which a node is not ready before Reserver moves the holds that it has placed "
        "there; 0: they stay. Takes effect with --maintenance-windows. Default: 5m.",
        default=300.0,
        metavar="DURATION",
        read=parse_seconds,
        check=check_duration,
        in_file=InFile("maintenance.replaceNotReadyAfter"),
    )
    lending: bool = setting(
        "Let pods borrow what reservations lend, and delete these pods when an owner comes. "
        "Needs the rights of scheduler-config/components/lending.",
        default=False,
        in_file=InFile("featureGates.Lending", stage=Stage.ALPHA),
    )
    keep_held_nodes: bool = setting(
        "Annotate nodes that hold reservations, so that autoscalers keep them. Needs the "
        "rights of scheduler-config/components/autoscalers.",
        default=False,
        in_file=InFile("featureGates.KeepHeldNodes", stage=Stage.BETA),
    )
    provisioning_requests: bool = setting(
        "Hold room for the pods of ProvisioningRequests (autoscaling.x-k8s.io) of the class "
        "hold.reserver.io. Needs their CRD, the CRD of Reservations and the rights of "
        "scheduler-config/components/provisioning.",
        default=False,
        in_file=InFile("featureGates.ProvisioningRequests", stage=Stage.ALPHA),
    )
    capacity_buffers: bool = setting(
        "Write a CapacityBuffer for each reservation that finds no place, and for each pod "
        "that only holds keep out, so that autoscalers add nodes. Needs --keep-held-nodes, the "
        "CRD and the rights of scheduler-config/components/capacity-buffers.",
        default=False,
        in_file=InFile("featureGates.CapacityBuffers", stage=Stage.ALPHA),
    )
    tracing: bool = setting(
        "Send OpenTelemetry traces of calls and moves to OTEL_EXPORTER_OTLP_ENDPOINT. Needs "
        "the extra `tracing`.",
        default=False,
        in_file=InFile("featureGates.Tracing", stage=Stage.ALPHA),
    )
    reservation_store: StoreKind | None = setting(
        "Form of the gRPC API's reservations: keys of ConfigMaps, or objects, which need the "
        "CRD. Default: object, with --no-crd configmap.",
        in_file=InFile("reservationStore"),
    )
    default_quota: str = setting(
        "Quota of a namespace without a ReservationQuota; none: no limits. It does not apply in "
        "--namespace and the namespaces of --configmap.",
        default=DEFAULT_QUOTA,
        metavar="NAME=LIMIT,…",
        in_file=InFile("defaultQuota", is_live=True, read=read_default, show=show_default),
    )
    tenant_ceiling_cluster: str | None = setting(
        "Share of the nodes' resources that all tenants may hold together; none: any. "
        "Reserver's own namespaces are no tenants. Default: 80%, with --capacity-buffers none.",
        default=None,
        metavar="PERCENT",
        check=check_percent,
        in_file=InFile("tenantCeiling.cluster", is_live=True, keeps_flag=True),
    )
    tenant_ceiling_node: str = setting(
        "The same of each node, for holds that name it or are placed there; none: any.",
        default=NO_PERCENT,
        metavar="PERCENT",
        check=check_percent,
        in_file=InFile("tenantCeiling.node", is_live=True, keeps_flag=True),
    )
    history_ttl: float = setting(
        "Time to keep ended reservations in the history; 0: not at all. Default: 7d.",
        default=7 * 86_400.0,
        metavar="DURATION",
        read=parse_seconds,
        check=check_duration,
        in_file=InFile("historyTTL", is_live=True),
    )
    warn_before_expiry: float = setting(
        "Time between the warning of an unclaimed hold and its expiry; 0: no warning. "
        "Default: 10m.",
        default=600.0,
        metavar="DURATION",
        read=parse_seconds,
        check=check_duration,
        in_file=InFile("warnBeforeExpiry", is_live=True),
    )
    logging_format: LogFormat | None = setting(
        "Form of the log. Default: text on a terminal, else json.",
        in_file=InFile("logging.format", keeps_flag=True),
    )
    log_level: LogLevel = setting(
        "Lowest level to log; debug shows each refusal.",
        default=LogLevel.INFO,
        in_file=InFile("logging.level", is_live=True, keeps_flag=True),
    )

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        for each in declared(self):
            try:
                each.check(getattr(self, each.field))
            except InvalidInput as exc:
                raise ConfigurationError(str(exc)) from exc
        self.check_listening()
        if self.config is None:
            self.check_together()

    def check_together(self) -> None:
        """Refuse settings of flags and file that exclude each other.

        Raises:
            ConfigurationError: some do; the error names the setting, the value and the remedy.
        """
        if self.capacity_buffers and not self.keep_held_nodes:
            raise ConfigurationError(
                "--capacity-buffers: needs --keep-held-nodes (featureGates.KeepHeldNodes); else "
                "autoscalers remove the node that they made for a reservation as soon as it is held"
            )
        if self.surge_moves and not self.pod_moves:
            raise ConfigurationError(
                "--surge-moves: needs --pod-moves (featureGates.PodMoves), of which it is a mode"
            )
        if self.maintenance_windows and not self.pod_moves:
            raise ConfigurationError(
                "--maintenance-windows: needs --pod-moves (featureGates.PodMoves), by which pods "
                "leave their nodes"
            )
        is_shared = not parse_ip("--bind-address", self.bind_address).is_loopback
        if self.webhook_address is not None and is_shared and not self.leader_elect:
            raise ConfigurationError(
                f"--webhook-address: with --bind-address {self.bind_address} it needs "
                "--leader-elect (leaderElection.leaderElect); else another replica could bind a "
                "pod into the room that this one lets a pod grow into"
            )

    @property
    def webhook_names(self) -> tuple[str, ...]:
        """The hosts of the webhooks' certificate: their Service, and an address if given."""
        address = self.webhook_address[0] if self.webhook_address else "0.0.0.0"  # noqa: S104
        names = (f"{WEBHOOK_SERVICE}.{self.namespace}.svc",)
        is_any = parse_ip("--webhook-address", address).is_unspecified
        return names if is_any else (*names, address)

    @property
    def store(self) -> StoreKind:
        """The kind of store for reservations of the gRPC API."""
        return self.reservation_store or (StoreKind.OBJECT if self.crd else StoreKind.CONFIGMAP)

    @property
    def cluster_ceiling(self) -> str:
        """The share of the cluster that tenants may hold, as text.

        By default ``none`` with capacity buffers: autoscalers add nodes for larger reservations.
        """
        default = NO_PERCENT if self.capacity_buffers else CEILING
        return self.tenant_ceiling_cluster or default

    @property
    def needs_crd(self) -> bool:
        """Whether the CRD of Reservations is required for readiness."""
        return self.crd or self.store is StoreKind.OBJECT or self.provisioning_requests
