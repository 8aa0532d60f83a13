import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from reserver.v1 import reservation_pb2 as _reservation_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListNodesRequest(_message.Message):
    __slots__ = ("node_names", "slot", "page_size", "page_token")
    class SlotEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NODE_NAMES_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    node_names: _containers.RepeatedScalarFieldContainer[str]
    slot: _containers.ScalarMap[str, str]
    page_size: int
    page_token: str
    def __init__(self, node_names: _Optional[_Iterable[str]] = ..., slot: _Optional[_Mapping[str, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListNodesResponse(_message.Message):
    __slots__ = ("nodes", "next_page_token")
    NODES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeCapacity]
    next_page_token: str
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodeCapacity, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class NodeCapacity(_message.Message):
    __slots__ = ("node", "resources", "fits")
    class ResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Amounts
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Amounts, _Mapping]] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    FITS_FIELD_NUMBER: _ClassVar[int]
    node: str
    resources: _containers.MessageMap[str, Amounts]
    fits: int
    def __init__(self, node: _Optional[str] = ..., resources: _Optional[_Mapping[str, Amounts]] = ..., fits: _Optional[int] = ...) -> None: ...

class Amounts(_message.Message):
    __slots__ = ("allocatable", "requested", "held", "free", "borrowed")
    ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    BORROWED_FIELD_NUMBER: _ClassVar[int]
    allocatable: str
    requested: str
    held: str
    free: str
    borrowed: str
    def __init__(self, allocatable: _Optional[str] = ..., requested: _Optional[str] = ..., held: _Optional[str] = ..., free: _Optional[str] = ..., borrowed: _Optional[str] = ...) -> None: ...

class ListQuotasRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListQuotasResponse(_message.Message):
    __slots__ = ("quotas", "next_page_token")
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    quotas: _containers.RepeatedCompositeFieldContainer[NamespaceQuota]
    next_page_token: str
    def __init__(self, quotas: _Optional[_Iterable[_Union[NamespaceQuota, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class NamespaceQuota(_message.Message):
    __slots__ = ("namespace", "name", "hard", "used", "pending", "max_ttl", "forbids_node_names", "forbids_firm_holds")
    class HardEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class UsedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    HARD_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    MAX_TTL_FIELD_NUMBER: _ClassVar[int]
    FORBIDS_NODE_NAMES_FIELD_NUMBER: _ClassVar[int]
    FORBIDS_FIRM_HOLDS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    hard: _containers.ScalarMap[str, str]
    used: _containers.ScalarMap[str, str]
    pending: int
    max_ttl: _duration_pb2.Duration
    forbids_node_names: bool
    forbids_firm_holds: bool
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., hard: _Optional[_Mapping[str, str]] = ..., used: _Optional[_Mapping[str, str]] = ..., pending: _Optional[int] = ..., max_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., forbids_node_names: _Optional[bool] = ..., forbids_firm_holds: _Optional[bool] = ...) -> None: ...

class ListAccountsRequest(_message.Message):
    __slots__ = ("namespace", "since", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    since: _timestamp_pb2.Timestamp
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAccountsResponse(_message.Message):
    __slots__ = ("accounts", "next_page_token", "currency")
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CURRENCY_FIELD_NUMBER: _ClassVar[int]
    accounts: _containers.RepeatedCompositeFieldContainer[Account]
    next_page_token: str
    currency: str
    def __init__(self, accounts: _Optional[_Iterable[_Union[Account, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., currency: _Optional[str] = ...) -> None: ...

class Account(_message.Message):
    __slots__ = ("week", "namespace", "owner", "resource", "held", "claimed", "used", "unused", "cost", "unused_cost")
    WEEK_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    UNUSED_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    UNUSED_COST_FIELD_NUMBER: _ClassVar[int]
    week: _timestamp_pb2.Timestamp
    namespace: str
    owner: str
    resource: str
    held: float
    claimed: float
    used: float
    unused: float
    cost: float
    unused_cost: float
    def __init__(self, week: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., namespace: _Optional[str] = ..., owner: _Optional[str] = ..., resource: _Optional[str] = ..., held: _Optional[float] = ..., claimed: _Optional[float] = ..., used: _Optional[float] = ..., unused: _Optional[float] = ..., cost: _Optional[float] = ..., unused_cost: _Optional[float] = ...) -> None: ...

class WhatIfRequest(_message.Message):
    __slots__ = ("reservations", "namespace")
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    reservations: _containers.RepeatedCompositeFieldContainer[_reservation_pb2.ReservationSpec]
    namespace: str
    def __init__(self, reservations: _Optional[_Iterable[_Union[_reservation_pb2.ReservationSpec, _Mapping]]] = ..., namespace: _Optional[str] = ...) -> None: ...

class WhatIfResponse(_message.Message):
    __slots__ = ("fits", "shortages", "placements")
    FITS_FIELD_NUMBER: _ClassVar[int]
    SHORTAGES_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    fits: bool
    shortages: _containers.RepeatedCompositeFieldContainer[Shortage]
    placements: _containers.RepeatedCompositeFieldContainer[WhatIfPlacement]
    def __init__(self, fits: _Optional[bool] = ..., shortages: _Optional[_Iterable[_Union[Shortage, _Mapping]]] = ..., placements: _Optional[_Iterable[_Union[WhatIfPlacement, _Mapping]]] = ...) -> None: ...

class WhatIfPlacement(_message.Message):
    __slots__ = ("parts",)
    PARTS_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[_reservation_pb2.PlacedSlots]
    def __init__(self, parts: _Optional[_Iterable[_Union[_reservation_pb2.PlacedSlots, _Mapping]]] = ...) -> None: ...

class Shortage(_message.Message):
    __slots__ = ("index", "message", "never")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NEVER_FIELD_NUMBER: _ClassVar[int]
    index: int
    message: str
    never: bool
    def __init__(self, index: _Optional[int] = ..., message: _Optional[str] = ..., never: _Optional[bool] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("pod_namespace", "pod_name")
    POD_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_NAME_FIELD_NUMBER: _ClassVar[int]
    pod_namespace: str
    pod_name: str
    def __init__(self, pod_namespace: _Optional[str] = ..., pod_name: _Optional[str] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("explanation",)
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    explanation: _struct_pb2.Struct
    def __init__(self, explanation: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class DumpRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DumpResponse(_message.Message):
    __slots__ = ("document",)
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    document: bytes
    def __init__(self, document: _Optional[bytes] = ...) -> None: ...
