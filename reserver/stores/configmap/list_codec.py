"""Reads a node's reservations from a list: two forms that managers wrote before Reserver.

The data key is the node; each item holds cpu (millicores) and memory (bytes) for one pod until an
expiry (unix seconds or RFC 3339)::

    {"pod", "namespace", "cpu", "mem", "expire"}
    {"reservingPod", "reservingPodNamespace", "cpuMilli", "memMilli", "expireAt"}

Despite its name ``memMilli`` is in bytes. Other fields are ignored, as before Reserver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from reserver.cluster.pod import PodName
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import names
from reserver.k8s.objects.limits import check_amount
from reserver.k8s.objects.times import parse_unix_or_moment
from reserver.reservations.entry import identified
from reserver.reservations.reservation import Ref, Reservation


@dataclass(frozen=True, slots=True)
class _Fields:
    pod: str
    namespace: str
    cpu: str
    memory: str
    expiry: str


_SHORT = _Fields("pod", "namespace", "cpu", "mem", "expire")
_LONG = _Fields("reservingPod", "reservingPodNamespace", "cpuMilli", "memMilli", "expireAt")


def read_item(item: Any, node: Ref) -> Reservation:  # noqa: ANN401 - whatever JSON can hold
    """Return the reservation of an item of a node's list.

    Args:
        item: the parsed item.
        node: the ref of the list; its key is the node.

    Raises:
        InvalidInput: some field is invalid; the error carries its path within the item.
    """
    if not isinstance(item, dict):
        problem = f"{shorten(repr(item))} is not an object"
        raise InvalidInput("", problem, 'write {"pod", "namespace", "cpu", "mem", "expire"}')
    fields = _LONG if _LONG.pod in item else _SHORT
    pod = _string(item, fields.pod)
    names.check_subdomain(pod, fields.pod, "a pod's name")
    namespace = _string(item, fields.namespace)
    names.check_label(namespace, fields.namespace, "a namespace")
    cpu, memory = _amount(item, fields.cpu), _amount(item, fields.memory)
    if not cpu and not memory:
        raise InvalidInput(fields.cpu, "holds nothing", "write the millicores or bytes to hold")
    owner = PodName(namespace, pod)
    resources = {"cpu": cpu, "memory": memory, "pods": 1}
    return identified(
        Reservation(
            ref=node._replace(item=str(owner)),
            digest="",
            node=node.key,
            owners=(owner,),
            resources={name: amount for name, amount in resources.items() if amount},
            expires_at=_moment(item, fields.expiry),
        )
    )


class _Names(msgspec.Struct):
    pod: Any = None
    namespace: Any = None
    reserving_pod: Any = msgspec.field(default=None, name="reservingPod")
    reserving_pod_namespace: Any = msgspec.field(default=None, name="reservingPodNamespace")


_NAMES = msgspec.json.Decoder(_Names)


def name_of(item: str) -> str | None:
    """Return the owner of an item in the form of `Ref.item`, much faster than `read_item`.

    The item may still be broken; None if only `read_item` can find the owner.
    """
    try:
        found = _NAMES.decode(item)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if found.reserving_pod is not None:
        return f"{found.reserving_pod_namespace}/{found.reserving_pod}"
    return f"{found.namespace}/{found.pod}"


def _required(item: dict[str, Any], field: str, remedy: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
    if item.get(field) is None:
        raise InvalidInput(field, "is missing", remedy)
    return item[field]


def _string(item: dict[str, Any], field: str) -> str:
    value = _required(item, field, "name the pod and its namespace")
    if not isinstance(value, str):
        raise InvalidInput(field, f"{shorten(repr(value))} is not a string", "write a name")
    return value


def _amount(item: dict[str, Any], field: str) -> int:
    remedy = "write millicores of cpu, bytes of memory"
    value = _required(item, field, remedy)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(field, f"{shorten(repr(value))} is not a whole number", remedy)
    return check_amount(value, str(value), field)


def _moment(item: dict[str, Any], field: str) -> float:
    value = _required(item, field, "write its end: unix seconds or RFC 3339")
    with under(field):
        return parse_unix_or_moment(value)
