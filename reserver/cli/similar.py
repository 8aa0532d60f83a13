"""The question whether another word is meant: of pods, nodes, namespaces, kinds, resources.

The names that there are come from Reserver, or from the API server of a kubeconfig.
"""

from __future__ import annotations

from collections.abc import AsyncIterable
from contextlib import suppress
from http import HTTPStatus

from reserver.cli import failure
from reserver.cli.failure import Failed, Refused, did_you_mean
from reserver.cli.podmoves import KubeClient
from reserver.client import CallFailed, Client, Selection
from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.k8s.objects.objects import ObjectList, decode, metadata_of

RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu")
"""Resources that most clusters have."""


async def node(client: Client, name: str, otherwise: str = "") -> str:
    """Return the question whether another node is meant, if there is none of that name."""
    found = (each.node async for each in client.capacity.nodes())
    return did_you_mean(name, await _readable(found), otherwise)


async def resource(client: Client, name: str, otherwise: str = "") -> str:
    """Return the question whether another resource is meant, if no node offers this one."""
    found = (key async for each in client.capacity.nodes() for key in each.resources)
    return did_you_mean(name, await _readable(found), otherwise)


async def namespace(client: Client, name: str, otherwise: str = "") -> str:
    """Return the question whether another namespace is meant: one with reservations or quotas."""
    of_owners = (o.namespace async for each in client.list() for o in each.spec.owners)
    of_quotas = (each.namespace async for each in client.capacity.quotas())
    known = await _readable(of_owners) + await _readable(of_quotas)
    return did_you_mean(name, known, otherwise)


async def why_none(client: Client, selection: Selection) -> str:
    """Return why a selection has no reservation, if it names something that is not there."""
    found = []
    if selection.node and (question := await node(client, selection.node)):
        found.append(f"there is no node {selection.node}; {question}")
    named = selection.owner_namespace
    if named and (question := await namespace(client, named)):
        found.append(f"no reservation is for pods of {named}; {question}")
    return "\n".join(found)


async def _readable(words: AsyncIterable[str]) -> list[str]:
    """Return words of Reserver; none for a caller without the right to read them."""
    try:
        return [each async for each in words]
    except CallFailed:
        return []


_MOST = 2_000
"""So many objects of a collection are asked for similar names."""


async def require_pod(client: KubeClient, pod: PodName) -> None:
    """Return if there is a pod, or the caller may not know.

    Raises:
        Failed: there is none; it names the one that is meant.
    """
    if await _is_missing(client, f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"):
        raise Refused(_sentence(f"there is no pod {pod}", await like(client, pod)))


async def require_node(client: KubeClient, name: str) -> None:
    """Return if there is a node, or the caller may not know.

    Raises:
        Failed: there is none; it names the one that is meant.
    """
    if await _is_missing(client, f"/api/v1/nodes/{name}"):
        raise await no_node(client, name)


async def no_node(client: KubeClient, name: str) -> Failed:
    """Return that there is no such node, and which one is meant."""
    question = did_you_mean(name, await _names(client, "/api/v1/nodes"))
    return Refused(_sentence(f"there is no node {name!r}", question))


async def like(client: KubeClient, pod: PodName) -> str:
    """Return the question whether another pod is meant: of another namespace, or a similar name."""
    others = await _namespaces(client, pod.name)
    if others:
        return f"did you mean {others[0]}/{pod.name}?"
    names = await _names(client, f"/api/v1/namespaces/{pod.namespace}/pods")
    return did_you_mean(pod.name, names, before=f"{pod.namespace}/")


def _sentence(problem: str, question: str) -> str:
    return f"{problem}; {question}" if question else problem


async def _is_missing(client: KubeClient, path: str) -> bool:
    try:
        await client.get(path)
    except ApiError as exc:
        if exc.status == HTTPStatus.NOT_FOUND:
            return True
        if not failure.lacks_right(exc):
            raise
    return False


async def _namespaces(client: KubeClient, name: str) -> list[str]:
    """Return in which namespaces there is a pod of this name."""
    with suppress(ApiError):
        asked = {"fieldSelector": f"metadata.name={name}", "limit": "5"}
        listed = decode(ObjectList, await client.get("/api/v1/pods", asked))
        found = [metadata_of(each) for each in listed.items or ()]
        return sorted(each.namespace for each in found if each.name == name)
    return []


async def _names(client: KubeClient, path: str) -> list[str]:
    """Return the names of a collection; none for a caller without the right to read them."""
    with suppress(ApiError):
        listed = decode(ObjectList, await client.get(path, {"limit": str(_MOST)}))
        return [metadata_of(each).name for each in listed.items or ()]
    return []
