from reserver.v1 import reservation_pb2 as _reservation_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Judging(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JUDGING_UNSPECIFIED: _ClassVar[Judging]
    JUDGING_SOUND: _ClassVar[Judging]
    JUDGING_UPSTREAM: _ClassVar[Judging]
JUDGING_UNSPECIFIED: Judging
JUDGING_SOUND: Judging
JUDGING_UPSTREAM: Judging

class PlanRequest(_message.Message):
    __slots__ = ("policy", "judging", "make_room")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    JUDGING_FIELD_NUMBER: _ClassVar[int]
    MAKE_ROOM_FIELD_NUMBER: _ClassVar[int]
    policy: str
    judging: Judging
    make_room: MakeRoom
    def __init__(self, policy: _Optional[str] = ..., judging: _Optional[_Union[Judging, str]] = ..., make_room: _Optional[_Union[MakeRoom, _Mapping]] = ...) -> None: ...

class MakeRoom(_message.Message):
    __slots__ = ("pods", "reservations", "together")
    PODS_FIELD_NUMBER: _ClassVar[int]
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    TOGETHER_FIELD_NUMBER: _ClassVar[int]
    pods: _containers.RepeatedCompositeFieldContainer[PendingPod]
    reservations: _containers.RepeatedCompositeFieldContainer[WantedReservation]
    together: bool
    def __init__(self, pods: _Optional[_Iterable[_Union[PendingPod, _Mapping]]] = ..., reservations: _Optional[_Iterable[_Union[WantedReservation, _Mapping]]] = ..., together: _Optional[bool] = ...) -> None: ...

class PendingPod(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class WantedReservation(_message.Message):
    __slots__ = ("name", "spec")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    name: str
    spec: _reservation_pb2.ReservationSpec
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[_reservation_pb2.ReservationSpec, _Mapping]] = ...) -> None: ...

class PlanResponse(_message.Message):
    __slots__ = ("progress", "moves", "kept", "more_kept", "notes", "warnings", "complete", "landings", "fewest_moves")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    MORE_KEPT_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    LANDINGS_FIELD_NUMBER: _ClassVar[int]
    FEWEST_MOVES_FIELD_NUMBER: _ClassVar[int]
    progress: str
    moves: _containers.RepeatedCompositeFieldContainer[PlannedMove]
    kept: _containers.RepeatedCompositeFieldContainer[KeptPod]
    more_kept: int
    notes: _containers.RepeatedScalarFieldContainer[str]
    warnings: _containers.RepeatedScalarFieldContainer[str]
    complete: bool
    landings: _containers.RepeatedCompositeFieldContainer[Landing]
    fewest_moves: int
    def __init__(self, progress: _Optional[str] = ..., moves: _Optional[_Iterable[_Union[PlannedMove, _Mapping]]] = ..., kept: _Optional[_Iterable[_Union[KeptPod, _Mapping]]] = ..., more_kept: _Optional[int] = ..., notes: _Optional[_Iterable[str]] = ..., warnings: _Optional[_Iterable[str]] = ..., complete: _Optional[bool] = ..., landings: _Optional[_Iterable[_Union[Landing, _Mapping]]] = ..., fewest_moves: _Optional[int] = ...) -> None: ...

class Landing(_message.Message):
    __slots__ = ("namespace", "pod", "node")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pod: str
    node: str
    def __init__(self, namespace: _Optional[str] = ..., pod: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class PlannedMove(_message.Message):
    __slots__ = ("namespace", "pod", "uid", "from_node", "to_node", "strategy", "profile", "reason", "improves")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    FROM_NODE_FIELD_NUMBER: _ClassVar[int]
    TO_NODE_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    IMPROVES_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pod: str
    uid: str
    from_node: str
    to_node: str
    strategy: str
    profile: str
    reason: str
    improves: str
    def __init__(self, namespace: _Optional[str] = ..., pod: _Optional[str] = ..., uid: _Optional[str] = ..., from_node: _Optional[str] = ..., to_node: _Optional[str] = ..., strategy: _Optional[str] = ..., profile: _Optional[str] = ..., reason: _Optional[str] = ..., improves: _Optional[str] = ...) -> None: ...

class KeptPod(_message.Message):
    __slots__ = ("namespace", "pod", "node", "strategy", "profile", "why")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pod: str
    node: str
    strategy: str
    profile: str
    why: str
    def __init__(self, namespace: _Optional[str] = ..., pod: _Optional[str] = ..., node: _Optional[str] = ..., strategy: _Optional[str] = ..., profile: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...
