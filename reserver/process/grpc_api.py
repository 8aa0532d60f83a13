"""Assembles the gRPC API: its services, and the feeds of its watches."""

from __future__ import annotations

import time
from functools import partial

from reserver.extender.handlers import Extender
from reserver.extender.metrics import Metrics
from reserver.grpc.access import CallAccess
from reserver.grpc.service import Service
from reserver.k8s.client import ApiClient
from reserver.k8s.reviewer import Reviewer
from reserver.process.assembly import Assembly
from reserver.process.debugging import dump
from reserver.reservations.enums import StoreKind
from reserver.settings.serve import Settings


def prepare(
    settings: Settings, reviews: ApiClient, assembly: Assembly, extender: Extender, metrics: Metrics
) -> Service:
    """Return the services; their watches show changes from now on.

    Args:
        settings: the allowed callers and their audiences.
        reviews: client of the API server, for tokens and rights.
        assembly: the state and stores to serve.
        extender: answers the calls of kube-scheduler.
        metrics: counts the calls.
    """
    access = None
    if settings.wants_grpc_tokens:
        asked = settings.namespace, time.monotonic, settings.grpc_audiences
        access = CallAccess(
            Reviewer(reviews, *asked), writes_objects=assembly.stores.default is StoreKind.OBJECT
        )
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
        counted_holds=assembly.accountant,
        dump=partial(dump, settings, assembly, metrics.exposition.text),
    )
    assembly.listeners.add(service.feed)
    return service
