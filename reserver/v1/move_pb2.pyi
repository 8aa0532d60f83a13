import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MoveMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MOVE_MODE_UNSPECIFIED: _ClassVar[MoveMode]
    MOVE_MODE_RESERVE_FIRST: _ClassVar[MoveMode]
    MOVE_MODE_EVICT_ONLY: _ClassVar[MoveMode]

class MovePhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MOVE_PHASE_UNSPECIFIED: _ClassVar[MovePhase]
    MOVE_PHASE_PENDING: _ClassVar[MovePhase]
    MOVE_PHASE_RESERVING: _ClassVar[MovePhase]
    MOVE_PHASE_EVICTING: _ClassVar[MovePhase]
    MOVE_PHASE_LANDING: _ClassVar[MovePhase]
    MOVE_PHASE_SUCCEEDED: _ClassVar[MovePhase]
    MOVE_PHASE_FAILED: _ClassVar[MovePhase]
    MOVE_PHASE_ABORTED: _ClassVar[MovePhase]
MOVE_MODE_UNSPECIFIED: MoveMode
MOVE_MODE_RESERVE_FIRST: MoveMode
MOVE_MODE_EVICT_ONLY: MoveMode
MOVE_PHASE_UNSPECIFIED: MovePhase
MOVE_PHASE_PENDING: MovePhase
MOVE_PHASE_RESERVING: MovePhase
MOVE_PHASE_EVICTING: MovePhase
MOVE_PHASE_LANDING: MovePhase
MOVE_PHASE_SUCCEEDED: MovePhase
MOVE_PHASE_FAILED: MovePhase
MOVE_PHASE_ABORTED: MovePhase

class PodMove(_message.Message):
    __slots__ = ("namespace", "name", "uid", "spec", "status", "created")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    uid: str
    spec: MoveSpec
    status: MoveStatus
    created: _timestamp_pb2.Timestamp
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., spec: _Optional[_Union[MoveSpec, _Mapping]] = ..., status: _Optional[_Union[MoveStatus, _Mapping]] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class MoveSpec(_message.Message):
    __slots__ = ("pod", "to", "mode", "timeout", "delete_options", "group", "paused", "ttl_seconds_after_finished")
    POD_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    DELETE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    TTL_SECONDS_AFTER_FINISHED_FIELD_NUMBER: _ClassVar[int]
    pod: MovedPod
    to: MoveTarget
    mode: MoveMode
    timeout: _duration_pb2.Duration
    delete_options: MoveDeleteOptions
    group: MoveGroup
    paused: bool
    ttl_seconds_after_finished: int
    def __init__(self, pod: _Optional[_Union[MovedPod, _Mapping]] = ..., to: _Optional[_Union[MoveTarget, _Mapping]] = ..., mode: _Optional[_Union[MoveMode, str]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., delete_options: _Optional[_Union[MoveDeleteOptions, _Mapping]] = ..., group: _Optional[_Union[MoveGroup, _Mapping]] = ..., paused: _Optional[bool] = ..., ttl_seconds_after_finished: _Optional[int] = ...) -> None: ...

class MovedPod(_message.Message):
    __slots__ = ("name", "uid", "after")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    name: str
    uid: str
    after: str
    def __init__(self, name: _Optional[str] = ..., uid: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class MoveTarget(_message.Message):
    __slots__ = ("node", "node_selector")
    class NodeSelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    NODE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    node: str
    node_selector: _containers.ScalarMap[str, str]
    def __init__(self, node: _Optional[str] = ..., node_selector: _Optional[_Mapping[str, str]] = ...) -> None: ...

class MoveDeleteOptions(_message.Message):
    __slots__ = ("grace_period_seconds",)
    GRACE_PERIOD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    grace_period_seconds: int
    def __init__(self, grace_period_seconds: _Optional[int] = ...) -> None: ...

class MoveGroup(_message.Message):
    __slots__ = ("name", "size", "across_namespaces")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ACROSS_NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    name: str
    size: int
    across_namespaces: bool
    def __init__(self, name: _Optional[str] = ..., size: _Optional[int] = ..., across_namespaces: _Optional[bool] = ...) -> None: ...

class MoveStatus(_message.Message):
    __slots__ = ("phase", "reason", "message", "from_node", "to_node", "reservation", "replacement", "started", "evicted", "finished", "pod")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FROM_NODE_FIELD_NUMBER: _ClassVar[int]
    TO_NODE_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    REPLACEMENT_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    EVICTED_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    phase: MovePhase
    reason: str
    message: str
    from_node: str
    to_node: str
    reservation: str
    replacement: MoveReplacement
    started: _timestamp_pb2.Timestamp
    evicted: _timestamp_pb2.Timestamp
    finished: _timestamp_pb2.Timestamp
    pod: str
    def __init__(self, phase: _Optional[_Union[MovePhase, str]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., from_node: _Optional[str] = ..., to_node: _Optional[str] = ..., reservation: _Optional[str] = ..., replacement: _Optional[_Union[MoveReplacement, _Mapping]] = ..., started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., evicted: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., pod: _Optional[str] = ...) -> None: ...

class MoveReplacement(_message.Message):
    __slots__ = ("name", "uid", "node")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    name: str
    uid: str
    node: str
    def __init__(self, name: _Optional[str] = ..., uid: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class CreateMovesRequest(_message.Message):
    __slots__ = ("namespace", "moves", "group", "request_id")
    class Entry(_message.Message):
        __slots__ = ("name", "spec")
        NAME_FIELD_NUMBER: _ClassVar[int]
        SPEC_FIELD_NUMBER: _ClassVar[int]
        name: str
        spec: MoveSpec
        def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[MoveSpec, _Mapping]] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    moves: _containers.RepeatedCompositeFieldContainer[CreateMovesRequest.Entry]
    group: MoveGroup
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., moves: _Optional[_Iterable[_Union[CreateMovesRequest.Entry, _Mapping]]] = ..., group: _Optional[_Union[MoveGroup, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateMovesResponse(_message.Message):
    __slots__ = ("moves",)
    MOVES_FIELD_NUMBER: _ClassVar[int]
    moves: _containers.RepeatedCompositeFieldContainer[PodMove]
    def __init__(self, moves: _Optional[_Iterable[_Union[PodMove, _Mapping]]] = ...) -> None: ...

class GetMoveRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class GetMoveResponse(_message.Message):
    __slots__ = ("move",)
    MOVE_FIELD_NUMBER: _ClassVar[int]
    move: PodMove
    def __init__(self, move: _Optional[_Union[PodMove, _Mapping]] = ...) -> None: ...

class MoveFilter(_message.Message):
    __slots__ = ("phases", "group")
    PHASES_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    phases: _containers.RepeatedScalarFieldContainer[MovePhase]
    group: str
    def __init__(self, phases: _Optional[_Iterable[_Union[MovePhase, str]]] = ..., group: _Optional[str] = ...) -> None: ...

class ListMovesRequest(_message.Message):
    __slots__ = ("namespace", "filter", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    filter: MoveFilter
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., filter: _Optional[_Union[MoveFilter, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListMovesResponse(_message.Message):
    __slots__ = ("moves", "next_page_token")
    MOVES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    moves: _containers.RepeatedCompositeFieldContainer[PodMove]
    next_page_token: str
    def __init__(self, moves: _Optional[_Iterable[_Union[PodMove, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchMovesRequest(_message.Message):
    __slots__ = ("namespace", "filter", "resume_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    filter: MoveFilter
    resume_token: str
    def __init__(self, namespace: _Optional[str] = ..., filter: _Optional[_Union[MoveFilter, _Mapping]] = ..., resume_token: _Optional[str] = ...) -> None: ...

class WatchMovesResponse(_message.Message):
    __slots__ = ("kind", "move", "resume_token")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[WatchMovesResponse.Kind]
        KIND_ADDED: _ClassVar[WatchMovesResponse.Kind]
        KIND_MODIFIED: _ClassVar[WatchMovesResponse.Kind]
        KIND_DELETED: _ClassVar[WatchMovesResponse.Kind]
        KIND_BOOKMARK: _ClassVar[WatchMovesResponse.Kind]
    KIND_UNSPECIFIED: WatchMovesResponse.Kind
    KIND_ADDED: WatchMovesResponse.Kind
    KIND_MODIFIED: WatchMovesResponse.Kind
    KIND_DELETED: WatchMovesResponse.Kind
    KIND_BOOKMARK: WatchMovesResponse.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    kind: WatchMovesResponse.Kind
    move: PodMove
    resume_token: str
    def __init__(self, kind: _Optional[_Union[WatchMovesResponse.Kind, str]] = ..., move: _Optional[_Union[PodMove, _Mapping]] = ..., resume_token: _Optional[str] = ...) -> None: ...

class UpdateMoveRequest(_message.Message):
    __slots__ = ("namespace", "name", "paused", "uid")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    paused: bool
    uid: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., paused: _Optional[bool] = ..., uid: _Optional[str] = ...) -> None: ...

class UpdateMoveResponse(_message.Message):
    __slots__ = ("move",)
    MOVE_FIELD_NUMBER: _ClassVar[int]
    move: PodMove
    def __init__(self, move: _Optional[_Union[PodMove, _Mapping]] = ...) -> None: ...

class DeleteMoveRequest(_message.Message):
    __slots__ = ("namespace", "name", "uid")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    uid: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ...) -> None: ...

class DeleteMoveResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
