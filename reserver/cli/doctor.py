"""`reserver doctor`: checks the way to Reserver, and the installation."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from importlib import metadata
from typing import Any

import typer

from reserver import DISTRIBUTION
from reserver.cli import checkup, failure, interrupt, output, table
from reserver.cli.checkup import Finding
from reserver.cli.connection import calling, connected
from reserver.cli.failure import ExitStatus
from reserver.cli.output_formats import Report, ReportOption
from reserver.cli.progress import progress
from reserver.cli.table import Cell
from reserver.cli.target import Target
from reserver.errors import ApiError, ConfigurationError, ReserverError

_RIGHTS = (
    *(("get", "pods"), ("list", "pods")),
    *(("get", "pods/portforward"), ("create", "pods/portforward")),
)
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_GROUP = "/apis/reserver.io/v1alpha1"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


def doctor(target: Target, form: ReportOption = Report.TABLE) -> None:
    """Check the connection, your rights, versions, clocks, the CRDs and the webhook.

    Each check is a line, with the remedy where something is to be done.

    Exit status: 0 all is well; 1 something is to be done; 2 wrong usage.

    Examples:
        reserver doctor
        reserver doctor -o json
    """
    found = interrupt.run(findings(target))
    show(found, form)
    if not all(each.is_ok for each in found):
        raise typer.Exit(ExitStatus.REFUSED)


def show(found: Sequence[Finding], form: Report) -> None:
    """Print findings: a line for each, or a document."""
    if form is not Report.TABLE:
        output.document({"checks": [each._asdict() for each in found]}, form)
    else:
        marks = {True: Cell("ok", "green"), False: Cell("to do", "red")}
        table.show(
            ("CHECK", "RESULT", "FOUND"),
            [(each.check, marks[each.is_ok], str(each)) for each in found],
        )


async def findings(target: Target) -> list[Finding]:
    """Return all findings, about the cluster and about Reserver."""
    async with progress("Checking"):
        return [*await _of_cluster(target), *await _of_reserver(target)]


async def _of_reserver(target: Target) -> list[Finding]:
    """Return findings about Reserver itself, through its gRPC API."""
    begun = time.monotonic()
    try:
        async with connected(target) as session:
            dump = json.loads(await session.client.capacity.dump())
    except ReserverError as exc:
        return [Finding("reserver", False, str(failure.of(exc)))]
    now, took_s = datetime.now(UTC), time.monotonic() - begun
    where = target.address or f"a pod in {target.reserver_namespace}"
    found = checkup.of_dump(dump, metadata.version(DISTRIBUTION), now, took_s)
    return [Finding("reserver", True, f"{where} answers"), *found]


async def _of_cluster(target: Target) -> list[Finding]:
    """Return findings about the API server, and about what it serves."""
    found: list[Finding] = []

    async def look(client: Any, _: str) -> None:  # noqa: ANN401 - `ApiClient`, imported late
        version = json.loads(await client.get("/version"))["gitVersion"]
        found.append(Finding("kubernetes", True, f"{version} at {client.server}"))
        if not target.address:  # Which needs no right to a pod.
            with suppress(ApiError):
                found.append(await _rights(client, target.reserver_namespace))
        served = await _served(client)
        found.extend(checkup.of_resources(served))
        with suppress(ApiError):  # Not everybody may read them.
            listed = json.loads(await client.get(_WEBHOOKS))
            names = {each["metadata"]["name"] for each in listed["items"]}
            found.append(checkup.of_webhooks(names, wanted="schedpatches" in served))

    try:
        await calling(target, look)
    except ConfigurationError as exc:
        if target.address:  # It takes no kubeconfig.
            return [Finding("kubernetes", True, f"not checked: {exc}")]
        return [Finding("kubernetes", False, str(exc))]
    except ReserverError as exc:
        found.append(Finding("kubernetes", False, str(failure.of(exc))))
    return found


async def _served(client: Any) -> set[str]:  # noqa: ANN401 - as above
    """Return the resources of reserver.io that the API server has."""
    try:
        listed = json.loads(await client.get(_GROUP))
    except ApiError as exc:
        if exc.status != HTTPStatus.NOT_FOUND:
            raise
        return set()
    return {each["name"] for each in listed["resources"]}


async def _rights(client: Any, namespace: str) -> Finding:  # noqa: ANN401 - as above
    allowed = {}
    for verb, resource in _RIGHTS:
        body = {"spec": {"resourceAttributes": _attributes(verb, resource, namespace)}}
        answer = json.loads(await client.create(_REVIEWS, body))
        allowed[f"{verb} {resource}"] = bool(answer["status"]["allowed"])
    return checkup.of_rights(allowed, namespace)


def _attributes(verb: str, resource: str, namespace: str) -> dict[str, str]:
    name, _, subresource = resource.partition("/")
    return {"verb": verb, "resource": name, "subresource": subresource, "namespace": namespace}
