"""Empties nodes in hand: lists their pods, and writes and deletes PodMoves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from typing import NamedTuple

from reserver.base.fairness import in_turns
from reserver.cluster.guests import guests_on
from reserver.cluster.pod import PodName
from reserver.cluster.snapshot import Snapshot
from reserver.errors import ApiError
from reserver.k8s.client import ApiClient
from reserver.maintenance.model import Window
from reserver.maintenance.moving import (
    KEPT_S,
    LABEL,
    CreateMove,
    MoveEffect,
    WrittenMove,
    emptying,
    leftovers,
    options,
)
from reserver.moves import podmove
from reserver.moves.drain import Drain, DrainOptions, judge
from reserver.moves.index import KnownMove, MoveIndex
from reserver.moves.manifests import SharedFields, manifest
from reserver.moves.surge_pods import pods

MOST_BYTES = 4 * 2**20
"""Most bytes of a list of a node's pods; the pods of a longer list are read one by one."""

MOST_READ = 1_000
"""Most pods of one node that are read one by one."""

MOST_ENDED = 50
"""Most moves of windows without nodes in hand that one pass deletes. Any user who may create
PodMoves may set their label, and a finalizer that keeps deleted PodMoves."""

LOOK_AGAIN_S = 5.0
"""Seconds between two looks at the pods of a node."""


class NodeLook(NamedTuple):
    """The drain of a node's pods (None if the pods could not be read), and its unix seconds."""

    drain: Drain | None
    at: float


class NodeEmptying:
    """Moves pods off nodes by PodMoves."""

    def __init__(
        self,
        client: ApiClient,
        moves: MoveIndex,
        snapshot: Snapshot,
        failed: Callable[[ApiError], None],
    ) -> None:
        """Begin with no node looked at.

        Args:
            moves: the observed PodMoves.
            snapshot: the pods of each node.
            failed: called with each error of the API server; raises if the API server is away.
        """
        self._client = client
        self._moves = moves
        self._snapshot = snapshot
        self._looks: dict[str, NodeLook] = {}
        self._failed = failed

    def drain(self, node: str) -> Drain | None:
        """Return the drain of a node in hand at the last look; None before, or if unreadable."""
        found = self._looks.get(node)
        return found.drain if found else None

    async def look(self, nodes: Mapping[str, Window], now: float) -> None:
        """Look at the pods of the nodes in hand; forget all other nodes.

        A node whose pods cannot be read delays no other node.

        Raises:
            ApiError: the API server does not answer.
        """
        self._looks = {node: look for node, look in self._looks.items() if node in nodes}
        for node, window in nodes.items():
            known = self._looks.get(node)
            if known is None or not 0 <= now - known.at < LOOK_AGAIN_S:
                self._looks[node] = NodeLook(await self._judged(node, options(window)), now)

    async def _judged(self, node: str, allowed: DrainOptions) -> Drain | None:
        """Return the drain of a node's pods; None if the pods cannot be read."""
        try:
            return await self._drain_of(node, allowed)
        except ApiError as exc:
            self._failed(ApiError(exc.status, exc.reason, f"pods of node {node}: {exc.message}"))
            return None

    async def _drain_of(self, node: str, allowed: DrainOptions) -> Drain:
        on_node = f"spec.nodeName={node}"
        try:
            return judge(await self._listed("/api/v1/pods", on_node), allowed)
        except ApiError as exc:
            if exc.reason != "TooLarge":
                raise
        guests = guests_on((node,), self._snapshot)[:MOST_READ]  # Any tenant may fill the list.
        found = [Drain((), (), ())]
        for name in (each.pod.name for each in guests):
            selector = f"metadata.name={name.name},{on_node}"
            found.append(judge(await self._listed(pods(name.namespace), selector), allowed))
        return Drain(*(tuple(chain.from_iterable(some)) for some in zip(*found, strict=True)))

    async def _listed(self, path: str, selector: str) -> bytes:
        return await self._client.get_bounded(path, MOST_BYTES, {"fieldSelector": selector})

    async def move(self, nodes: Mapping[str, Window], now: float) -> None:
        """Move pods off nodes in hand, and end the moves of windows without nodes in hand.

        Pods wait while their namespace has as many PodMoves as are read.
        """
        created = Counter[str]()
        for node, window in nodes.items():
            drain = self.drain(node)
            if drain is not None:
                for effect in tuple(emptying(window, drain, self._moves_of, self._named, now)):
                    if isinstance(effect, CreateMove):
                        namespace = effect.name.namespace
                        if not self._moves.has_room(namespace, created[namespace]):
                            continue
                        created[namespace] += 1
                    await self._carry_out(effect, window.key)
        in_hand = frozenset(window.key for window in nodes.values())
        over = in_turns(leftovers(self._ours(), in_hand), lambda each: each.name.namespace)
        for effect in tuple(islice(over, MOST_ENDED)):
            await self._carry_out(effect)

    async def _carry_out(self, effect: MoveEffect, key: str = "") -> None:
        """Create a PodMove with the key of its window, or delete one."""
        if isinstance(effect, CreateMove):
            pod = PodName(effect.pod.namespace, effect.pod.name)
            terms = SharedFields(timeout=f"{int(effect.timeout_s)}s", keep_s=KEPT_S, urgent=True)
            metadata = {"name": effect.name.name, "labels": {LABEL: key}}
            body = manifest(pod, terms, uid=effect.pod.uid, mode=effect.mode, metadata=metadata)
            request = self._client.create(podmove.collection(pod.namespace), body)
        else:
            options = {"preconditions": {"uid": effect.uid, "resourceVersion": effect.version}}
            request = self._client.delete(podmove.path(effect.name), options)
        try:
            await request
        except ApiError as exc:
            if not (
                exc.is_conflict or exc.is_absent
            ):  # It is so already, or its namespace is gone.
                self._failed(exc)

    def _moves_of(self, pod: PodName) -> Iterable[WrittenMove]:
        return filter(None, map(self._named, self._moves.of_pod(pod)))

    def _named(self, name: PodName) -> WrittenMove | None:
        known = self._moves.get(name)
        return _written(known) if known is not None else None

    def _ours(self) -> Iterable[WrittenMove]:
        return filter(None, map(_written, self._moves))


def _written(known: KnownMove) -> WrittenMove | None:
    if known.move is None:
        return None
    key = (known.metadata.labels or {}).get(LABEL, "")
    return WrittenMove(known.move, key, known.metadata.resource_version)
