import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POLICY_UNSPECIFIED: _ClassVar[Policy]
    POLICY_PREFER: _ClassVar[Policy]
    POLICY_REQUIRE: _ClassVar[Policy]

class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PHASE_UNSPECIFIED: _ClassVar[Phase]
    PHASE_PENDING: _ClassVar[Phase]
    PHASE_ACTIVE: _ClassVar[Phase]
    PHASE_CLAIMED: _ClassVar[Phase]
    PHASE_EXPIRED: _ClassVar[Phase]
    PHASE_FAILED: _ClassVar[Phase]
    PHASE_INVALID: _ClassVar[Phase]
POLICY_UNSPECIFIED: Policy
POLICY_PREFER: Policy
POLICY_REQUIRE: Policy
PHASE_UNSPECIFIED: Phase
PHASE_PENDING: Phase
PHASE_ACTIVE: Phase
PHASE_CLAIMED: Phase
PHASE_EXPIRED: Phase
PHASE_FAILED: Phase
PHASE_INVALID: Phase

class Reservation(_message.Message):
    __slots__ = ("name", "id", "spec", "status", "etag", "author", "since", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    id: str
    spec: ReservationSpec
    status: ReservationStatus
    etag: str
    author: str
    since: _timestamp_pb2.Timestamp
    labels: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., id: _Optional[str] = ..., spec: _Optional[_Union[ReservationSpec, _Mapping]] = ..., status: _Optional[_Union[ReservationStatus, _Mapping]] = ..., etag: _Optional[str] = ..., author: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ReservationSpec(_message.Message):
    __slots__ = ("owners", "resources", "slots", "node", "placement", "starts_at", "expires_at", "ttl", "policy", "reusable", "refill", "refill_up_to", "nodes", "release_if_idle", "preemptible", "priority", "retain", "description", "schedule", "lend")
    class ResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    STARTS_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    REUSABLE_FIELD_NUMBER: _ClassVar[int]
    REFILL_FIELD_NUMBER: _ClassVar[int]
    REFILL_UP_TO_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    RELEASE_IF_IDLE_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIBLE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    RETAIN_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    LEND_FIELD_NUMBER: _ClassVar[int]
    owners: _containers.RepeatedCompositeFieldContainer[Owner]
    resources: _containers.ScalarMap[str, str]
    slots: int
    node: str
    placement: Placement
    starts_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    ttl: _duration_pb2.Duration
    policy: Policy
    reusable: bool
    refill: bool
    refill_up_to: int
    nodes: Nodes
    release_if_idle: _duration_pb2.Duration
    preemptible: bool
    priority: int
    retain: bool
    description: str
    schedule: Schedule
    lend: Lend
    def __init__(self, owners: _Optional[_Iterable[_Union[Owner, _Mapping]]] = ..., resources: _Optional[_Mapping[str, str]] = ..., slots: _Optional[int] = ..., node: _Optional[str] = ..., placement: _Optional[_Union[Placement, _Mapping]] = ..., starts_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., policy: _Optional[_Union[Policy, str]] = ..., reusable: _Optional[bool] = ..., refill: _Optional[bool] = ..., refill_up_to: _Optional[int] = ..., nodes: _Optional[_Union[Nodes, _Mapping]] = ..., release_if_idle: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., preemptible: _Optional[bool] = ..., priority: _Optional[int] = ..., retain: _Optional[bool] = ..., description: _Optional[str] = ..., schedule: _Optional[_Union[Schedule, _Mapping]] = ..., lend: _Optional[_Union[Lend, _Mapping]] = ...) -> None: ...

class Nodes(_message.Message):
    __slots__ = ("count", "selector")
    class SelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    count: int
    selector: _containers.ScalarMap[str, str]
    def __init__(self, count: _Optional[int] = ..., selector: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Schedule(_message.Message):
    __slots__ = ("cron", "duration", "time_zone", "until", "count", "lead", "suspend", "skip")
    CRON_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LEAD_FIELD_NUMBER: _ClassVar[int]
    SUSPEND_FIELD_NUMBER: _ClassVar[int]
    SKIP_FIELD_NUMBER: _ClassVar[int]
    cron: str
    duration: _duration_pb2.Duration
    time_zone: str
    until: _timestamp_pb2.Timestamp
    count: int
    lead: _duration_pb2.Duration
    suspend: bool
    skip: _containers.RepeatedCompositeFieldContainer[_timestamp_pb2.Timestamp]
    def __init__(self, cron: _Optional[str] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., time_zone: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., count: _Optional[int] = ..., lead: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., suspend: _Optional[bool] = ..., skip: _Optional[_Iterable[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]]] = ...) -> None: ...

class Occurrence(_message.Message):
    __slots__ = ("starts_at", "ends_at")
    STARTS_AT_FIELD_NUMBER: _ClassVar[int]
    ENDS_AT_FIELD_NUMBER: _ClassVar[int]
    starts_at: _timestamp_pb2.Timestamp
    ends_at: _timestamp_pb2.Timestamp
    def __init__(self, starts_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ends_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Lend(_message.Message):
    __slots__ = ("below_priority",)
    BELOW_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    below_priority: int
    def __init__(self, below_priority: _Optional[int] = ...) -> None: ...

class Owner(_message.Message):
    __slots__ = ("pod", "controller", "selector", "replaces")
    POD_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    REPLACES_FIELD_NUMBER: _ClassVar[int]
    pod: PodOwner
    controller: ControllerOwner
    selector: LabelSelector
    replaces: ReplacedPod
    def __init__(self, pod: _Optional[_Union[PodOwner, _Mapping]] = ..., controller: _Optional[_Union[ControllerOwner, _Mapping]] = ..., selector: _Optional[_Union[LabelSelector, _Mapping]] = ..., replaces: _Optional[_Union[ReplacedPod, _Mapping]] = ...) -> None: ...

class ReplacedPod(_message.Message):
    __slots__ = ("uid", "existing")
    UID_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    uid: str
    existing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, uid: _Optional[str] = ..., existing: _Optional[_Iterable[str]] = ...) -> None: ...

class PodOwner(_message.Message):
    __slots__ = ("name", "namespace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class ControllerOwner(_message.Message):
    __slots__ = ("kind", "name", "namespace")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    name: str
    namespace: str
    def __init__(self, kind: _Optional[str] = ..., name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class LabelSelector(_message.Message):
    __slots__ = ("match_labels", "match_expressions", "namespace")
    class MatchLabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MATCH_LABELS_FIELD_NUMBER: _ClassVar[int]
    MATCH_EXPRESSIONS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    match_labels: _containers.ScalarMap[str, str]
    match_expressions: _containers.RepeatedCompositeFieldContainer[LabelSelectorRequirement]
    namespace: str
    def __init__(self, match_labels: _Optional[_Mapping[str, str]] = ..., match_expressions: _Optional[_Iterable[_Union[LabelSelectorRequirement, _Mapping]]] = ..., namespace: _Optional[str] = ...) -> None: ...

class LabelSelectorRequirement(_message.Message):
    __slots__ = ("key", "operator", "values")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    key: str
    operator: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key: _Optional[str] = ..., operator: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class Placement(_message.Message):
    __slots__ = ("node_selector", "affinity", "tolerations", "topology_spread_constraints", "strategy")
    class Strategy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STRATEGY_UNSPECIFIED: _ClassVar[Placement.Strategy]
        STRATEGY_PACK: _ClassVar[Placement.Strategy]
        STRATEGY_SPREAD: _ClassVar[Placement.Strategy]
    STRATEGY_UNSPECIFIED: Placement.Strategy
    STRATEGY_PACK: Placement.Strategy
    STRATEGY_SPREAD: Placement.Strategy
    class NodeSelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NODE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    AFFINITY_FIELD_NUMBER: _ClassVar[int]
    TOLERATIONS_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_SPREAD_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    node_selector: _containers.ScalarMap[str, str]
    affinity: _struct_pb2.Struct
    tolerations: _containers.RepeatedCompositeFieldContainer[_struct_pb2.Struct]
    topology_spread_constraints: _containers.RepeatedCompositeFieldContainer[_struct_pb2.Struct]
    strategy: Placement.Strategy
    def __init__(self, node_selector: _Optional[_Mapping[str, str]] = ..., affinity: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., tolerations: _Optional[_Iterable[_Union[_struct_pb2.Struct, _Mapping]]] = ..., topology_spread_constraints: _Optional[_Iterable[_Union[_struct_pb2.Struct, _Mapping]]] = ..., strategy: _Optional[_Union[Placement.Strategy, str]] = ...) -> None: ...

class ReservationStatus(_message.Message):
    __slots__ = ("phase", "backed", "message", "claims", "placements", "reason", "assumes_namespace", "idle_since", "occurrences")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    BACKED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ASSUMES_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    IDLE_SINCE_FIELD_NUMBER: _ClassVar[int]
    OCCURRENCES_FIELD_NUMBER: _ClassVar[int]
    phase: Phase
    backed: bool
    message: str
    claims: _containers.RepeatedCompositeFieldContainer[Claim]
    placements: _containers.RepeatedCompositeFieldContainer[PlacedSlots]
    reason: str
    assumes_namespace: bool
    idle_since: _timestamp_pb2.Timestamp
    occurrences: _containers.RepeatedCompositeFieldContainer[Occurrence]
    def __init__(self, phase: _Optional[_Union[Phase, str]] = ..., backed: _Optional[bool] = ..., message: _Optional[str] = ..., claims: _Optional[_Iterable[_Union[Claim, _Mapping]]] = ..., placements: _Optional[_Iterable[_Union[PlacedSlots, _Mapping]]] = ..., reason: _Optional[str] = ..., assumes_namespace: _Optional[bool] = ..., idle_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., occurrences: _Optional[_Iterable[_Union[Occurrence, _Mapping]]] = ...) -> None: ...

class PlacedSlots(_message.Message):
    __slots__ = ("node", "slots")
    NODE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    node: str
    slots: int
    def __init__(self, node: _Optional[str] = ..., slots: _Optional[int] = ...) -> None: ...

class Claim(_message.Message):
    __slots__ = ("pod", "uid")
    POD_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    pod: str
    uid: str
    def __init__(self, pod: _Optional[str] = ..., uid: _Optional[str] = ...) -> None: ...

class CreateRequest(_message.Message):
    __slots__ = ("name", "spec", "request_id", "no_wait", "labels", "namespace")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NO_WAIT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    spec: ReservationSpec
    request_id: str
    no_wait: bool
    labels: _containers.ScalarMap[str, str]
    namespace: str
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[ReservationSpec, _Mapping]] = ..., request_id: _Optional[str] = ..., no_wait: _Optional[bool] = ..., labels: _Optional[_Mapping[str, str]] = ..., namespace: _Optional[str] = ...) -> None: ...

class CreateResponse(_message.Message):
    __slots__ = ("reservation",)
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    reservation: Reservation
    def __init__(self, reservation: _Optional[_Union[Reservation, _Mapping]] = ...) -> None: ...

class CreateSetRequest(_message.Message):
    __slots__ = ("reservations", "request_id", "namespace")
    class Entry(_message.Message):
        __slots__ = ("name", "spec", "labels")
        class LabelsEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: str
            def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
        NAME_FIELD_NUMBER: _ClassVar[int]
        SPEC_FIELD_NUMBER: _ClassVar[int]
        LABELS_FIELD_NUMBER: _ClassVar[int]
        name: str
        spec: ReservationSpec
        labels: _containers.ScalarMap[str, str]
        def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[ReservationSpec, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    reservations: _containers.RepeatedCompositeFieldContainer[CreateSetRequest.Entry]
    request_id: str
    namespace: str
    def __init__(self, reservations: _Optional[_Iterable[_Union[CreateSetRequest.Entry, _Mapping]]] = ..., request_id: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class CreateSetResponse(_message.Message):
    __slots__ = ("reservations",)
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    reservations: _containers.RepeatedCompositeFieldContainer[Reservation]
    def __init__(self, reservations: _Optional[_Iterable[_Union[Reservation, _Mapping]]] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("reservation",)
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    reservation: Reservation
    def __init__(self, reservation: _Optional[_Union[Reservation, _Mapping]] = ...) -> None: ...

class ReservationFilter(_message.Message):
    __slots__ = ("node", "owner", "owner_namespace", "phases", "owner_controller", "owner_labels", "label_selector")
    class OwnerLabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    OWNER_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PHASES_FIELD_NUMBER: _ClassVar[int]
    OWNER_CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    OWNER_LABELS_FIELD_NUMBER: _ClassVar[int]
    LABEL_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    node: str
    owner: str
    owner_namespace: str
    phases: _containers.RepeatedScalarFieldContainer[Phase]
    owner_controller: ControllerOwner
    owner_labels: _containers.ScalarMap[str, str]
    label_selector: str
    def __init__(self, node: _Optional[str] = ..., owner: _Optional[str] = ..., owner_namespace: _Optional[str] = ..., phases: _Optional[_Iterable[_Union[Phase, str]]] = ..., owner_controller: _Optional[_Union[ControllerOwner, _Mapping]] = ..., owner_labels: _Optional[_Mapping[str, str]] = ..., label_selector: _Optional[str] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("filter", "page_size", "page_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: ReservationFilter
    page_size: int
    page_token: str
    def __init__(self, filter: _Optional[_Union[ReservationFilter, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("reservations", "next_page_token")
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    reservations: _containers.RepeatedCompositeFieldContainer[Reservation]
    next_page_token: str
    def __init__(self, reservations: _Optional[_Iterable[_Union[Reservation, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("filter", "resume_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: ReservationFilter
    resume_token: str
    def __init__(self, filter: _Optional[_Union[ReservationFilter, _Mapping]] = ..., resume_token: _Optional[str] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("kind", "reservation", "resume_token")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[WatchResponse.Kind]
        KIND_ADDED: _ClassVar[WatchResponse.Kind]
        KIND_MODIFIED: _ClassVar[WatchResponse.Kind]
        KIND_DELETED: _ClassVar[WatchResponse.Kind]
        KIND_BOOKMARK: _ClassVar[WatchResponse.Kind]
    KIND_UNSPECIFIED: WatchResponse.Kind
    KIND_ADDED: WatchResponse.Kind
    KIND_MODIFIED: WatchResponse.Kind
    KIND_DELETED: WatchResponse.Kind
    KIND_BOOKMARK: WatchResponse.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    kind: WatchResponse.Kind
    reservation: Reservation
    resume_token: str
    def __init__(self, kind: _Optional[_Union[WatchResponse.Kind, str]] = ..., reservation: _Optional[_Union[Reservation, _Mapping]] = ..., resume_token: _Optional[str] = ...) -> None: ...

class UpdateRequest(_message.Message):
    __slots__ = ("name", "spec", "etag", "labels", "remove_labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    REMOVE_LABELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    spec: ReservationSpec
    etag: str
    labels: _containers.ScalarMap[str, str]
    remove_labels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[ReservationSpec, _Mapping]] = ..., etag: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., remove_labels: _Optional[_Iterable[str]] = ...) -> None: ...

class UpdateResponse(_message.Message):
    __slots__ = ("reservation",)
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    reservation: Reservation
    def __init__(self, reservation: _Optional[_Union[Reservation, _Mapping]] = ...) -> None: ...

class ExtendRequest(_message.Message):
    __slots__ = ("name", "expires_at", "ttl", "etag")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    name: str
    expires_at: _timestamp_pb2.Timestamp
    ttl: _duration_pb2.Duration
    etag: str
    def __init__(self, name: _Optional[str] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...

class ExtendResponse(_message.Message):
    __slots__ = ("reservation",)
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    reservation: Reservation
    def __init__(self, reservation: _Optional[_Union[Reservation, _Mapping]] = ...) -> None: ...

class HistoryRequest(_message.Message):
    __slots__ = ("name", "owner_namespace", "since", "page_size", "page_token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    owner_namespace: str
    since: _timestamp_pb2.Timestamp
    page_size: int
    page_token: str
    def __init__(self, name: _Optional[str] = ..., owner_namespace: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class HistoryResponse(_message.Message):
    __slots__ = ("reservations", "next_page_token")
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    reservations: _containers.RepeatedCompositeFieldContainer[PastReservation]
    next_page_token: str
    def __init__(self, reservations: _Optional[_Iterable[_Union[PastReservation, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class PastReservation(_message.Message):
    __slots__ = ("name", "id", "owner_namespace", "owners", "outcome", "since", "ended", "expires_at", "nodes", "resources", "slots", "claimed", "claims", "description", "author", "spec")
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OUTCOME_UNSPECIFIED: _ClassVar[PastReservation.Outcome]
        OUTCOME_CLAIMED: _ClassVar[PastReservation.Outcome]
        OUTCOME_EXPIRED: _ClassVar[PastReservation.Outcome]
        OUTCOME_REMOVED: _ClassVar[PastReservation.Outcome]
        OUTCOME_IDLE: _ClassVar[PastReservation.Outcome]
    OUTCOME_UNSPECIFIED: PastReservation.Outcome
    OUTCOME_CLAIMED: PastReservation.Outcome
    OUTCOME_EXPIRED: PastReservation.Outcome
    OUTCOME_REMOVED: PastReservation.Outcome
    OUTCOME_IDLE: PastReservation.Outcome
    class ResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    name: str
    id: str
    owner_namespace: str
    owners: str
    outcome: PastReservation.Outcome
    since: _timestamp_pb2.Timestamp
    ended: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    nodes: _containers.RepeatedScalarFieldContainer[str]
    resources: _containers.ScalarMap[str, str]
    slots: int
    claimed: int
    claims: _containers.RepeatedCompositeFieldContainer[PastClaim]
    description: str
    author: str
    spec: str
    def __init__(self, name: _Optional[str] = ..., id: _Optional[str] = ..., owner_namespace: _Optional[str] = ..., owners: _Optional[str] = ..., outcome: _Optional[_Union[PastReservation.Outcome, str]] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., nodes: _Optional[_Iterable[str]] = ..., resources: _Optional[_Mapping[str, str]] = ..., slots: _Optional[int] = ..., claimed: _Optional[int] = ..., claims: _Optional[_Iterable[_Union[PastClaim, _Mapping]]] = ..., description: _Optional[str] = ..., author: _Optional[str] = ..., spec: _Optional[str] = ...) -> None: ...

class PastClaim(_message.Message):
    __slots__ = ("pod", "uid", "node", "at")
    POD_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    pod: str
    uid: str
    node: str
    at: _timestamp_pb2.Timestamp
    def __init__(self, pod: _Optional[str] = ..., uid: _Optional[str] = ..., node: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("name", "etag")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    name: str
    etag: str
    def __init__(self, name: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
