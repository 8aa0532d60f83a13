"""Containers of a pod, and the requests that the pod adds up to."""

from collections.abc import Mapping

from reserver.cluster import quantity
from reserver.cluster.quantity import Container, PodResources, effective_request

Written = Mapping[str, str]


def nano(written: Written) -> dict[str, int]:
    return {name.replace("_", "-"): quantity.parse(text) for name, text in written.items()}


def nano_or_none(written: Written | None) -> dict[str, int] | None:
    return None if written is None else nano(written)


def container(
    *, allocated: Written | None = None, actuated: Written | None = None, **requests: str
) -> Container:
    return Container(
        requests=nano(requests), allocated=nano_or_none(allocated), actuated=nano_or_none(actuated)
    )


def sidecar(
    *, allocated: Written | None = None, actuated: Written | None = None, **requests: str
) -> Container:
    return Container(
        requests=nano(requests),
        sidecar=True,
        allocated=nano_or_none(allocated),
        actuated=nano_or_none(actuated),
    )


def check(pod: PodResources, expected: Written) -> None:
    wanted = {name.replace("_", "-"): text for name, text in expected.items()}
    amounts = {name: quantity.amount(name, text) for name, text in wanted.items()}
    assert effective_request(pod) == amounts | {"pods": 1}


c, s = container, sidecar
