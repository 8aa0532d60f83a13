"""Assembles the gRPC API: its services, and the feeds of its watches."""

from __future__ import annotations

import time
from functools import partial

from reserver.assembly import Assembly
from reserver.config import Settings
from reserver.debugging import dump
from reserver.kube.api.client import ApiClient
from reserver.kube.api.reviewer import Reviewer
from reserver.rebalance.capacity import held_on
from reserver.rebalance_process import Planner
from reserver.server.exposition import Exposition
from reserver.server.extender import Extender
from reserver.server.metrics import Metrics
from reserver.server.rpc.access import Access
from reserver.server.rpc.move_feed import MoveFeed
from reserver.server.rpc.move_writing import MoveWriting
from reserver.server.rpc.moves import Moving
from reserver.server.rpc.service import Service
from reserver.wire.migration import podmove


def prepare(
    settings: Settings,
    client: ApiClient,
    reviews: ApiClient,
    assembly: Assembly,
    extender: Extender,
    metrics: Metrics,
) -> Service:
    """Return the services, told of what changes from now on.

    Args:
        settings: who may call.
        client: of the API server, for what is written.
        reviews: the same, for tokens and rights.
        assembly: what is served.
        extender: decides.
        metrics: counts the calls.
    """
    access = None
    if settings.wants_grpc_tokens:
        asked = settings.namespace, time.monotonic, settings.grpc_audiences
        access = Access(Reviewer(reviews, *asked))
    service = Service(
        state=assembly.state,
        stores=assembly.stores,
        extender=extender,
        namespace=settings.namespace,
        clock=assembly.clock,
        access=access,
        readiness=assembly.readiness,
        counted=metrics,
        past=assembly.archivist,
        planning=Planner(str(settings.kubeconfig or ""), lambda: held_on(assembly.state.snapshot)),
        moving=_moving(client, assembly),
        dump=partial(dump, settings, assembly, Exposition(metrics.registry).text),
    )
    assembly.subscribers.append(service.feed.touched)
    return service


def _moving(client: ApiClient, assembly: Assembly) -> Moving | None:
    if assembly.features.mover is None:
        return None
    feed = MoveFeed(assembly.features.mover.moves)
    assembly.features.mover.watchers.append(feed.touched)
    (watch,) = (each for each in assembly.reflectors if each.path == podmove.COLLECTION)
    return Moving(feed, MoveWriting(client, feed, assembly.clock), lambda: watch.absent)
