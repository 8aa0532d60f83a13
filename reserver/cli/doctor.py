"""`reserver doctor`: checks the way to Reserver, and the installation.

Each finding is a decision on a fetched document.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from importlib import metadata
from typing import Any, NamedTuple

import typer

from reserver import DISTRIBUTION
from reserver.cli import failure, interrupt, output, table
from reserver.cli.connection import calling, connected
from reserver.cli.failure import ExitStatus
from reserver.cli.output import Report, ReportOption
from reserver.cli.table import Cell, counted
from reserver.cli.target import Target
from reserver.cli.terminal import progress
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

    Exit status: 0 all is well; 1 a check asks for a change; 2 wrong usage.

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
    found = of_dump(dump, metadata.version(DISTRIBUTION), now, took_s)
    return [Finding("reserver", True, f"{where} answers"), *found]


async def _of_cluster(target: Target) -> list[Finding]:
    """Return findings about the API server and the objects that it serves."""
    found: list[Finding] = []

    async def look(client: Any, _: str) -> None:  # noqa: ANN401 - `ApiClient`, imported late
        version = json.loads(await client.get("/version"))["gitVersion"]
        found.append(Finding("kubernetes", True, f"{version} at {client.server}"))
        if not target.address:  # Which needs no right to a pod.
            with suppress(ApiError):
                found.append(await _rights(client, target.reserver_namespace))
        served = await _served(client)
        found.extend(of_resources(served))
        with suppress(ApiError):  # Not everybody may read them.
            listed = json.loads(await client.get(_WEBHOOKS))
            names = {each["metadata"]["name"] for each in listed["items"]}
            found.append(of_webhooks(names, wanted="schedpatches" in served))

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
    return of_rights(allowed, namespace)


def _attributes(verb: str, resource: str, namespace: str) -> dict[str, str]:
    name, _, subresource = resource.partition("/")
    return {"verb": verb, "resource": name, "subresource": subresource, "namespace": namespace}


_MOST_DRIFT_S = 2.0
"""So far the clocks of this machine and of Reserver may be apart."""

_CRDS = {
    "reservations": "kubectl apply -k scheduler-config/core",
    "reservationquotas": "kubectl apply -k scheduler-config/core",
    "podmoves": "kubectl apply -k scheduler-config/components/moves",
}
"""The resources of reserver.io that commands read, and how to install each."""


class Finding(NamedTuple):
    """A finding.

    Attributes:
        check: the subject.
        is_ok: whether no action is needed.
        said: the finding in words.
    """

    check: str
    is_ok: bool
    said: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.said}; {self.remedy}" if self.remedy else self.said


def of_dump(
    dump: Mapping[str, Any], version: str, now: datetime, took_s: float
) -> Iterator[Finding]:
    """Yield findings about the running Reserver.

    Args:
        dump: as `reserver dump` prints it.
        version: of this command.
        now: when the dump had come.
        took_s: how long the call took.
    """
    serves = str(dump["versions"].get(DISTRIBUTION, "unknown"))
    if serves == version:
        yield Finding("version", True, f"{version}, here and in the cluster")
    else:
        remedy = "install the same version here and there"
        yield Finding("version", False, f"{version} here, {serves} in the cluster", remedy)
    obstacles = list(dump["obstacles"])
    if obstacles:
        said = f"not ready: {'; '.join(map(str, obstacles))}"
        yield Finding("ready", False, said, "look at the log of its pod")
    else:
        counts = ", ".join(
            counted(dump[f"{each}s"], each) for each in ("node", "pod", "reservation")
        )
        yield Finding("ready", True, f"it sees {counts}")
    apart_s = (now - datetime.fromisoformat(dump["writtenAt"])).total_seconds()
    if -_MOST_DRIFT_S <= apart_s <= _MOST_DRIFT_S + took_s:
        yield Finding("clock", True, "this machine's clock agrees with Reserver's")
    else:
        said = f"this machine's clock is {abs(apart_s):.0f}s {'ahead' if apart_s > 0 else 'behind'}"
        yield Finding(
            "clock", False, said, "set it: times without a zone, such as 22:00, are read by it"
        )


def of_resources(served: Collection[str]) -> Iterator[Finding]:
    """Yield findings about the CRDs, from the resources of reserver.io that are served."""
    for name, command in _CRDS.items():
        if name in served:
            yield Finding(f"{name}.reserver.io", True, "installed")
        else:
            yield Finding(f"{name}.reserver.io", False, "not installed", f"run `{command}`")


def of_webhooks(names: Collection[str], *, wanted: bool) -> Finding:
    """Return a finding about the webhook for new pods.

    Args:
        names: of the webhook configurations.
        wanted: SchedPatches are served, which have no effect without it.
    """
    if "reserver" in names:
        return Finding("webhook", True, "installed")
    if wanted:
        remedy = "run `kubectl apply -k scheduler-config/components/webhooks`"
        return Finding("webhook", False, "not installed, and SchedPatches need it", remedy)
    return Finding("webhook", True, "not installed, and nothing needs it")


def of_rights(allowed: Mapping[str, bool], namespace: str) -> Finding:
    """Return a finding about the user's rights in Reserver's namespace, by `VERB RESOURCE`."""
    missing = sorted(right for right, is_allowed in allowed.items() if not is_allowed)
    if not missing:
        return Finding("rights", True, f"{', '.join(sorted(allowed))} in {namespace}")
    remedy = f"ask for a RoleBinding to the Role reserver-cli in {namespace}"
    return Finding("rights", False, f"no right to {', '.join(missing)} in {namespace}", remedy)
