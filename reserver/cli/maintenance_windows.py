"""Reads MaintenanceWindows through the API server of a kubeconfig."""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus

from reserver.cli.podmoves import KubeClient
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.objects.objects import ObjectList, decode
from reserver.maintenance import codec
from reserver.maintenance.model import Window


async def listed(client: KubeClient, now: float) -> list[tuple[Window, str]]:
    """Return the windows that can be read, each with its progress in the words of its status.

    Args:
        now: unix seconds: a recurring window is shown as it is then.

    Raises:
        ApiError: the API server does not show them; one without their CRD has none.
    """
    try:
        answer = decode(ObjectList, await client.get(codec.COLLECTION))
    except ApiError as exc:
        if exc.status == HTTPStatus.NOT_FOUND:
            return []
        raise
    found = []
    for raw in (answer.items or [])[: codec.MOST_WINDOWS]:
        with suppress(InvalidInput):
            item = decode(codec.WindowObject, raw)
            status = item.said()
            found.append((codec.read_object(item).at(now), status.message if status else ""))
    return found
