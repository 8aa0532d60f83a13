"""Moves a pod of a scheduler that does not ask Reserver, by a SchedPatch for its replacement.

Nothing is held: another scheduler sees no seats. The PodMove is written paused, and goes on once
the SchedPatch patches pods, so nothing is evicted before; the SchedPatch belongs to the PodMove.
Whether it does in this namespace, a pod tells that is created as a dry run.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from http import HTTPStatus

from reserver.cli import podmoves
from reserver.cli.failure import Failed, Status
from reserver.cli.move_view import Document, told
from reserver.cli.options import Output
from reserver.cli.podmoves import Client
from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.moves import podmove
from reserver.moves.manifests import SharedFields, manifest
from reserver.moves.model import DEFAULT_TIMEOUT_S
from reserver.moves.phases import MoveMode
from reserver.patching.patch import PatchName
from reserver.wire.k8s.objects import decode
from reserver.wire.patching import patchform
from reserver.wire.patching.replacement import Leaving, is_patched, patch_of, trial_pod

_LOOK_S = 0.2
_UNPATCHED = (
    "the API server does not have the pods of namespace {0} patched; nothing was evicted. Is it "
    "labelled reserver.io/webhooks=false (then: kubectl label namespace {0} reserver.io/webhooks-),"
    " or left out by the namespaceSelector of the MutatingWebhookConfiguration reserver?"
)


async def moved(
    client: Client,
    pod: PodName,
    to: str,
    terms: SharedFields,
    form: Output,
    *,
    wait: bool,
    patience_s: float = 15.0,
) -> None:
    """Move a pod; its replacement is patched to prefer a node, or any but the one it leaves.

    Args:
        client: of the API server.
        pod: that leaves.
        to: the node to go to; empty for any other.
        terms: of the PodMove.
        form: how it is printed.
        wait: until it has ended.
        patience_s: how long the SchedPatch may take to become active, in seconds.

    Raises:
        Failed: there is no such pod, nobody patches pods there, or the replacement is elsewhere.
        ApiError: the API server refuses, or does not answer.
    """
    raw, leaving = await _leaving(client, pod)
    body = manifest(pod, terms, uid=leaving.metadata.uid, to=to, mode=MoveMode.EVICT_ONLY)
    body["spec"]["paused"] = True
    move = await podmoves.create(client, body)
    name = PatchName(pod.namespace, move["metadata"]["name"])
    try:
        ttl = terms.timeout or f"{DEFAULT_TIMEOUT_S:.0f}s"
        owner = podmove.owner(move["metadata"]["name"], move["metadata"]["uid"])
        body = patch_of(leaving, name, to=to, ttl=ttl, owner=owner)
        await _patch(client, name, body, patience_s)
        await _try(client, name, body, raw)
    except BaseException:
        options = {"preconditions": {"uid": move["metadata"]["uid"]}}
        await _delete(client, podmove.path(PodName(*name)), options)
        raise
    await podmoves.pause(client, *name, paused=False)
    try:
        await podmoves.follow(client, [move], form, wait=wait)
        if wait:
            await _check(client, move, to, leaving.spec.node_name)
    finally:
        if wait:
            await _delete(client, patchform.object_path(name), {})


async def _leaving(client: Client, pod: PodName) -> tuple[bytes, Leaving]:
    try:
        raw = await client.get(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}")
    except ApiError as exc:
        if exc.status == HTTPStatus.NOT_FOUND:
            raise Failed(Status.REFUSED, f"there is no pod {pod}") from exc
        raise
    found = decode(Leaving, raw)
    if not found.metadata.labels:
        problem = f"{pod} has no labels, by which a SchedPatch could know its replacement"
        raise Failed(Status.REFUSED, problem)
    return raw, found


async def _patch(client: Client, name: PatchName, body: Document, patience_s: float) -> None:
    """Write a SchedPatch, and wait until it patches pods."""
    try:
        await client.create(patchform.collection(name.namespace), body)
    except ApiError as exc:
        if exc.status != HTTPStatus.NOT_FOUND:
            raise
        message = "the API server has no SchedPatches: apply scheduler-config/components/webhooks"
        raise Failed(Status.REFUSED, message) from exc
    said = ""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            while True:
                found = json.loads(await client.get(patchform.object_path(name)))
                for each in found.get("status", {}).get("conditions", ()):
                    if each["type"] == "Active" and each["status"] == "True":
                        return
                    said = f"{each['reason']}: {each['message']}"
                await asyncio.sleep(_LOOK_S)
    why = said or "is `reserver serve --webhook-address` there?"
    raise Failed(Status.REFUSED, f"the SchedPatch {name} patches no pods; {why}")


async def _try(client: Client, name: PatchName, patch: Document, leaving: bytes) -> None:
    """Raise if a pod like the one that leaves is not patched when it is created, as a dry run."""
    path = f"/api/v1/namespaces/{name.namespace}/pods?dryRun=All"
    try:
        made = await client.create(path, trial_pod(leaving))
    except ApiError:
        return  # No right to create pods, or no quota for one more: the replacement will show it.
    if not is_patched(made, patch):
        raise Failed(Status.REFUSED, _UNPATCHED.format(name.namespace))


async def _check(client: Client, move: Document, to: str, leaves: str) -> None:
    """Raise if the replacement is where it was not to be: a patch gives a preference, no more."""
    name = PodName(move["metadata"]["namespace"], move["metadata"]["name"])
    ended = json.loads(await client.get(podmove.path(name)))
    node = ended["status"].get("replacement", {}).get("node")
    is_elsewhere = node != to if to else node == leaves
    if node and is_elsewhere:
        where = f"not on {to}" if to else "again"
        raise Failed(Status.REFUSED, f"{told(ended)}, and {where}: its scheduler chose that")


async def _delete(client: Client, path: str, options: object) -> None:
    with suppress(ApiError):  # What is left expires.
        await client.delete(path, options)
