from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FilterRequest(_message.Message):
    __slots__ = ("pod", "node_names")
    POD_FIELD_NUMBER: _ClassVar[int]
    NODE_NAMES_FIELD_NUMBER: _ClassVar[int]
    pod: bytes
    node_names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pod: _Optional[bytes] = ..., node_names: _Optional[_Iterable[str]] = ...) -> None: ...

class FilterResponse(_message.Message):
    __slots__ = ("node_names", "refused")
    class RefusedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NODE_NAMES_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    node_names: _containers.RepeatedScalarFieldContainer[str]
    refused: _containers.ScalarMap[str, str]
    def __init__(self, node_names: _Optional[_Iterable[str]] = ..., refused: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ReserveRequest(_message.Message):
    __slots__ = ("pod_namespace", "pod_name", "pod_uid", "node")
    POD_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_NAME_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    pod_namespace: str
    pod_name: str
    pod_uid: str
    node: str
    def __init__(self, pod_namespace: _Optional[str] = ..., pod_name: _Optional[str] = ..., pod_uid: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class ReserveResponse(_message.Message):
    __slots__ = ("claims",)
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    claims: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, claims: _Optional[_Iterable[str]] = ...) -> None: ...

class UnreserveRequest(_message.Message):
    __slots__ = ("pod_uid",)
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    pod_uid: str
    def __init__(self, pod_uid: _Optional[str] = ...) -> None: ...

class UnreserveResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PreemptRequest(_message.Message):
    __slots__ = ("pod", "victims")
    class Victims(_message.Message):
        __slots__ = ("pod_uids",)
        POD_UIDS_FIELD_NUMBER: _ClassVar[int]
        pod_uids: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, pod_uids: _Optional[_Iterable[str]] = ...) -> None: ...
    class VictimsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: PreemptRequest.Victims
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[PreemptRequest.Victims, _Mapping]] = ...) -> None: ...
    POD_FIELD_NUMBER: _ClassVar[int]
    VICTIMS_FIELD_NUMBER: _ClassVar[int]
    pod: bytes
    victims: _containers.MessageMap[str, PreemptRequest.Victims]
    def __init__(self, pod: _Optional[bytes] = ..., victims: _Optional[_Mapping[str, PreemptRequest.Victims]] = ...) -> None: ...

class PreemptResponse(_message.Message):
    __slots__ = ("node_names",)
    NODE_NAMES_FIELD_NUMBER: _ClassVar[int]
    node_names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, node_names: _Optional[_Iterable[str]] = ...) -> None: ...

class BindRequest(_message.Message):
    __slots__ = ("pod_namespace", "pod_name", "pod_uid", "node")
    POD_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_NAME_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    pod_namespace: str
    pod_name: str
    pod_uid: str
    node: str
    def __init__(self, pod_namespace: _Optional[str] = ..., pod_name: _Optional[str] = ..., pod_uid: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class BindResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
