"""The question whether another word is meant: of nodes, namespaces, kinds, resources, commands."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from difflib import get_close_matches

from reserver.client import CallFailed, Client, Selection

RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu")
"""Resources that most clusters have."""

_NEAR = 0.7
"""How near a word has to be: `gpu` is not `cpu`."""


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the question whether a known word is meant; `otherwise` where none is near."""
    words = sorted(set(known) - {""})
    if word in words:
        return otherwise
    ends = [each for each in words if each.rpartition("/")[2] == word]
    near = ends or get_close_matches(word, words, 1, _NEAR)
    return f"did you mean {near[0]}?" if near else otherwise


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
    """Return words of Reserver; none to a caller who may not read them."""
    try:
        return [each async for each in words]
    except CallFailed:
        return []
