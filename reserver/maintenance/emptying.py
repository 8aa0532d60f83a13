"""Empties nodes in hand: looks at their pods, and writes and deletes PodMoves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from reserver.base.fairness import in_turns
from reserver.cluster.pod import PodName
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
from reserver.moves.drain import Drain, judge
from reserver.moves.index import KnownMove, MoveIndex
from reserver.moves.manifests import SharedFields, manifest

MOST_BYTES = 64 * 2**20
"""How long the list of a node's pods may be."""

MOST_ENDED = 50
"""How many moves of windows without any nodes in hand are deleted in one pass. Whoever may write
PodMoves may write their label, and a finalizer that keeps what is deleted."""

LOOK_AGAIN_S = 5.0
"""How long what was seen of a node's pods is good, in seconds."""


class NodeLook(NamedTuple):
    """A look at the pods of a node, and when it was, unix seconds."""

    drain: Drain
    at: float


class NodeEmptying:
    """Moves pods off nodes by PodMoves.

    Attributes:
        failed: called with each refusal of the API server; raises what concerns all.
        writes: how many PodMoves were written or deleted.
    """

    def __init__(self, client: ApiClient, moves: MoveIndex) -> None:
        """Begin with no node looked at; `moves` has the PodMoves that are known."""
        self._client = client
        self._moves = moves
        self._looks: dict[str, NodeLook] = {}
        self.failed: Callable[[ApiError], None] = lambda _: None
        self.writes = 0

    def drain(self, node: str) -> Drain | None:
        """Return what becomes of the pods of a node in hand, as it was last looked at."""
        found = self._looks.get(node)
        return found.drain if found else None

    async def look(self, nodes: Mapping[str, Window], now: float) -> None:
        """Look at the pods of nodes in hand, each with its window, and at no others.

        Raises:
            ApiError: the API server refuses, or does not answer.
        """
        self._looks = {node: look for node, look in self._looks.items() if node in nodes}
        for node, window in nodes.items():
            known = self._looks.get(node)
            if known is None or not 0 <= now - known.at < LOOK_AGAIN_S:
                selector = {"fieldSelector": f"spec.nodeName={node}"}
                pods = await self._client.get_bounded("/api/v1/pods", MOST_BYTES, selector)
                self._looks[node] = NodeLook(judge(pods, options(window)), now)

    async def move(self, nodes: Mapping[str, Window], now: float) -> None:
        """Have pods moved off nodes in hand, and end the moves of windows without any."""
        for node, window in nodes.items():
            drain = self.drain(node)
            if drain is not None:
                for effect in tuple(emptying(window, drain, self._moves_of, self._named, now)):
                    await self._carry_out(window, effect)
        in_hand = frozenset(window.key for window in nodes.values())
        over = in_turns(leftovers(self._ours(), in_hand), lambda each: each.name.namespace)
        for effect in tuple(islice(over, MOST_ENDED)):
            await self._delete(effect.name, effect.uid)

    async def _carry_out(self, window: Window, effect: MoveEffect) -> None:
        if not isinstance(effect, CreateMove):
            await self._delete(effect.name, effect.uid)
            return
        terms = SharedFields(timeout=f"{int(effect.timeout_s)}s", keep_s=KEPT_S, urgent=True)
        labels = {LABEL: window.key}
        pod = PodName(effect.pod.namespace, effect.pod.name)
        metadata = {"name": effect.name.name, "labels": labels}
        body = manifest(pod, terms, uid=effect.pod.uid, mode=effect.mode, metadata=metadata)
        try:
            await self._client.create(podmove.collection(pod.namespace), body)
        except ApiError as exc:
            if not (exc.is_conflict or exc.is_absent):  # It is there, or its namespace is gone.
                self.failed(exc)
        else:
            self.writes += 1

    async def _delete(self, name: PodName, uid: str) -> None:
        try:
            await self._client.delete(podmove.path(name), {"preconditions": {"uid": uid}})
        except ApiError as exc:
            if not (exc.is_conflict or exc.is_absent):
                self.failed(exc)
        else:
            self.writes += 1

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
    return WrittenMove(known.move, (known.metadata.labels or {}).get(LABEL, ""))
