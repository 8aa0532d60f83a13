"""`reserver move`: moves a pod to another node, with room held for its replacement.

A pod of a scheduler that does not use Reserver moves by a SchedPatch for its replacement. No room
is held: such a scheduler sees no seats. The PodMove is written paused, and resumes once the
SchedPatch patches pods, so no pod is evicted before. The SchedPatch belongs to the PodMove. A dry
run that creates a pod shows whether the pods of this namespace are patched.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

import typer

from reserver.cli import completion, podmoves, similar
from reserver.cli.failure import Refused, WrongUsage
from reserver.cli.options import NamespaceOption, pod_of, require_name
from reserver.cli.output import Output, OutputOption
from reserver.cli.podmoves import Document, KubeClient, summary
from reserver.cli.target import Target
from reserver.cluster.pod import PodName
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.times import in_hours, parse_duration
from reserver.moves import podmove
from reserver.moves.manifests import SharedFields, manifest
from reserver.moves.model import DEFAULT_TIMEOUT_S
from reserver.moves.phases import MoveMode
from reserver.patches import codec
from reserver.patches.model import PatchName
from reserver.patches.replacement import MovingPod, is_patched, patch_of, trial_pod
from reserver.settings.flags import flag


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMoveFlags:
    """The flags of commands that move pods."""

    surge: bool = flag(
        "Have a copy of the pod ready on its seat before the pod is evicted, if the pod can surge.",
        default=False,
    )
    urgent: bool = flag("Do not wait for a window in which pods may be moved.", default=False)
    timeout: str = flag(
        "A move fails if its pod has not landed by then. Default: 10m.",
        default="",
        metavar="DURATION",
    )
    grace_period: int = flag(
        "Seconds for a pod to stop. -1: the pod's own grace period.", default=-1, least=-1
    )
    wait: bool = flag("Wait until the move has ended.", default=True)

    def terms(self) -> SharedFields:
        """Return the fields of PodMoves that these flags give.

        Raises:
            Failed: the timeout cannot be read.
        """
        try:
            lasts = in_hours(self.timeout) if self.timeout else ""
        except InvalidInput as exc:
            raise WrongUsage(f"--timeout: {exc.problem}; {exc.remedy}") from exc
        if lasts and not parse_duration(lasts):
            raise WrongUsage("--timeout: is zero; write for example 10m")
        seconds = None if self.grace_period < 0 else self.grace_period
        mode = self.mode
        return SharedFields(timeout=lasts, grace_period_s=seconds, urgent=self.urgent, mode=mode)

    @property
    def mode(self) -> MoveMode:
        """The precondition of evictions."""
        return MoveMode.SURGE_FIRST if self.surge else MoveMode.RESERVE_FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFlags(SharedMoveFlags):
    """The flags of `move`."""

    evict_only: bool = flag("Evict the pod without holding a seat first.", default=False)
    by_patch: bool = flag(
        "For pods of a scheduler that does not ask Reserver: hold no seat, and have the "
        "replacement prefer the node by a SchedPatch.",
        default=False,
    )

    @property
    def mode(self) -> MoveMode:
        """The precondition of the eviction; raises Failed if flags contradict each other."""
        if self.surge and (self.evict_only or self.by_patch):
            other = "--evict-only" if self.evict_only else "--by-patch"
            problem = f"--surge: starts a copy on a held seat, and {other} holds none"
            raise WrongUsage(f"{problem}; leave one out")
        if self.surge:
            return MoveMode.SURGE_FIRST
        return MoveMode.EVICT_ONLY if self.evict_only else MoveMode.RESERVE_FIRST


_LOOK_S = 0.2
_UNPATCHED = (
    "the API server does not ask Reserver's webhook about pods of namespace {0}; nothing was "
    "evicted. Is it labelled reserver.io/webhooks=false (then: kubectl label namespace {0} "
    "reserver.io/webhooks-), or left out by the namespaceSelector of the "
    "MutatingWebhookConfiguration reserver?"
)


def move(
    target: Target,
    flags: MoveFlags,
    pod: Annotated[
        str,
        typer.Argument(
            metavar="[NAMESPACE/]POD", help="Pod to move.", autocompletion=completion.pods
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            metavar="NODE",
            help="Node to move the pod to. Default: any node that fits.",
            autocompletion=completion.nodes,
        ),
    ] = "",
    namespace: NamespaceOption = "",
    form: OutputOption = Output.TABLE,
) -> None:
    """Move a pod to another node; hold room for its replacement first.

    The command writes a PodMove, which Reserver carries out (`serve --pod-moves`). No pod is
    evicted before its replacement has a seat. Schedulers that do not ask Reserver see no seats. For
    their pods, --by-patch has a SchedPatch steer the replacement, without a seat
    (`serve --webhook-address`). With --surge a copy of the pod is ready before the pod is evicted
    (`serve --surge-moves`); for a pod that cannot surge, the output says why.

    Exit status: 0 the pod has landed, or with --no-wait the move is written; 1 failed, or refused;
    2 wrong usage; 3 the API server does not answer.

    Examples:
        reserver move shop/web-0 --to worker-2
        reserver move web-5d8f7c9b9d-x2x9p -n shop --no-wait
        reserver move shop/web-5d8f7c9b9d-x2x9p --surge
        reserver move shop/web-0 --to worker-2 --by-patch
    """
    home, name = pod_of(pod, "POD")
    if to:
        require_name("--to", to, "a node's name")
    terms = flags.terms()

    async def make(client: KubeClient, default: str) -> None:
        leaving = PodName(home or namespace or default, name)
        await similar.require_pod(client, leaving)
        if to:
            await similar.require_node(client, to)
        if flags.by_patch:
            await moved_by_patch(client, leaving, to, terms, form, wait=flags.wait)
            return
        body = manifest(leaving, terms, to=to)
        written = [await podmoves.create(client, body)]
        await podmoves.follow(client, written, form, wait=flags.wait)

    podmoves.run(target, make)


async def moved_by_patch(
    client: KubeClient,
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
        pod: that leaves.
        to: the node to go to; empty for any other.
        wait: until it has ended.
        patience_s: how long the SchedPatch may take to become active, in seconds.

    Raises:
        Failed: there is no such pod, nobody patches pods there, or the replacement is elsewhere.
        ApiError: the API server refuses, or does not answer.
    """
    raw, leaving = await _leaving_pod(client, pod)
    body = manifest(pod, terms, uid=leaving.metadata.uid, to=to, mode=MoveMode.EVICT_ONLY)
    body["spec"]["paused"] = True
    move = await podmoves.create(client, body)
    name = PatchName(pod.namespace, move["metadata"]["name"])
    try:
        ttl = terms.timeout or f"{DEFAULT_TIMEOUT_S:.0f}s"
        owner = podmove.owner(move["metadata"]["name"], move["metadata"]["uid"])
        body = patch_of(leaving, name, to=to, ttl=ttl, owner=owner)
        await _write_patch(client, name, body, patience_s)
        await _try_patch(client, name, body, raw)
    except BaseException:
        options = {"preconditions": {"uid": move["metadata"]["uid"]}}
        await _delete(client, podmove.path(PodName(*name)), options)
        raise
    await podmoves.pause(client, *name, paused=False)
    try:
        await podmoves.follow(client, [move], form, wait=wait)
        if wait:
            await _check_node(client, move, to, leaving.spec.node_name)
    except asyncio.CancelledError:
        wait = False  # The move goes on, and takes its SchedPatch with it.
        raise
    finally:
        if wait:
            await _delete(client, codec.object_path(name), {})


async def _leaving_pod(client: KubeClient, pod: PodName) -> tuple[bytes, MovingPod]:
    try:
        raw = await client.get(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}")
    except ApiError as exc:
        if exc.status == HTTPStatus.NOT_FOUND:
            raise Refused(f"there is no pod {pod}") from exc
        raise
    found = decode(MovingPod, raw)
    if not found.metadata.labels:
        raise Refused(f"{pod} has no labels, so a SchedPatch cannot select its replacement")
    return raw, found


async def _write_patch(
    client: KubeClient, name: PatchName, body: Document, patience_s: float
) -> None:
    """Write a SchedPatch, and wait until it patches pods."""
    try:
        await client.create(codec.collection(name.namespace), body)
    except ApiError as exc:
        if exc.status != HTTPStatus.NOT_FOUND:
            raise
        message = "the API server has no SchedPatches: apply scheduler-config/components/webhooks"
        raise Refused(message) from exc
    said = ""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            while True:
                found = json.loads(await client.get(codec.object_path(name)))
                for each in found.get("status", {}).get("conditions", ()):
                    if each["type"] == "Active" and each["status"] == "True":
                        return
                    said = f"{each['reason']}: {each['message']}"
                await asyncio.sleep(_LOOK_S)
    why = said or "does a Reserver run with --webhook-address?"
    raise Refused(f"the SchedPatch {name} patches no pods; {why}")


async def _try_patch(client: KubeClient, name: PatchName, patch: Document, leaving: bytes) -> None:
    """Raise if a pod like the one that leaves is not patched when it is created, as a dry run."""
    path = f"/api/v1/namespaces/{name.namespace}/pods?dryRun=All"
    try:
        made = await client.create(path, trial_pod(leaving))
    except ApiError:
        return  # No right to create pods, or no quota for one more: the replacement will show it.
    if not is_patched(made, patch):
        raise Refused(_UNPATCHED.format(name.namespace))


async def _check_node(client: KubeClient, move: Document, to: str, leaves: str) -> None:
    """Raise if the replacement is where it was not to be: a patch gives a preference, no more."""
    name = PodName(move["metadata"]["namespace"], move["metadata"]["name"])
    ended = json.loads(await client.get(podmove.path(name)))
    node = ended["status"].get("replacement", {}).get("node")
    is_elsewhere = node != to if to else node == leaves
    if node and is_elsewhere:
        where = f"not on {to}" if to else "again"
        raise Refused(f"{summary(ended)}, and {where}: its scheduler chose that")


async def _delete(client: KubeClient, path: str, options: object) -> None:
    with suppress(ApiError):  # What is left expires.
        await client.delete(path, options)
