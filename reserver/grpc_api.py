"""Assembles the gRPC API: its services, and the feeds of its watches."""

from __future__ import annotations

import time
from functools import partial

from reserver.assembly import Assembly
from reserver.config import Settings
from reserver.debugging import dump
from reserver.kube.api.client import ApiClient
from reserver.kube.api.reviewer import Reviewer
from reserver.server.exposition import Exposition
from reserver.server.extender import Extender
from reserver.server.metrics import Metrics
from reserver.server.rpc.access import Access
from reserver.server.rpc.service import Service


def prepare(
    settings: Settings,
    reviews: ApiClient,
    assembly: Assembly,
    extender: Extender,
    metrics: Metrics,
) -> Service:
    """Return the services, told of what changes from now on.

    Args:
        settings: who may call.
        reviews: client of the API server, for tokens and rights.
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
        dump=partial(dump, settings, assembly, Exposition(metrics.registry).text),
    )
    assembly.subscribers.append(service.feed.touched)
    return service
