"""`reserver preflight`: what an upgrade, or the way back, would change in a cluster."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import metadata
from itertools import chain
from typing import Annotated, Any

import typer

from reserver import DISTRIBUTION
from reserver.base.pacer import Backoff
from reserver.cli import (
    interrupt,
    preflight_files,
    preflight_holds,
    preflight_programs,
)
from reserver.cli.connection import calling
from reserver.cli.doctor import Finding, show
from reserver.cli.failure import ExitStatus, WrongUsage
from reserver.cli.manifests import read_files
from reserver.cli.options import FILES
from reserver.cli.output import Report, ReportOption
from reserver.cli.preflight_files import KINDS, Id, Object
from reserver.cli.preflight_holds import Unknown, WrittenSpec
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.errors import ApiError
from reserver.k8s.objects.objects import LabelledConfigMap, decode
from reserver.moves import podmove
from reserver.printable import printable
from reserver.reservations.quota import Quota
from reserver.settings.configuration import API_VERSION
from reserver.settings.serve import DEFAULT_QUOTA
from reserver.stores import quota_codec
from reserver.stores.codec.newer_fields import known_part
from reserver.stores.configmap.companion_codec import companion_name
from reserver.stores.configmap.entries import STORE_LABEL
from reserver.stores.object.codec import COLLECTION, ReservationObject

_VERSION = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\.\d{1,6})?")
_LENIENT_SINCE = (0, 2)
"""The version from which unknown fields in ConfigMaps are ignored (docs/adr/0070)."""

_FIRST = frozenset(
    {"owners", "owners[].controller", "owners[].pod", "owners[].selector", "resources", "slots"}
    | {"node", "placement", "placements", "startsAt", "expiresAt", "ttl", "policy", "reusable"}
    | {"preemptible", "priority", "requestId", "origin"}
)
"""The fields of a reservation that versions before `_LENIENT_SINCE` have."""

_PATIENCE_S = 30.0
"""Patience with a busy API server, in seconds: a changed CRD takes some."""

_GROUP = f"/apis/{API_VERSION}"
_NAMESPACES_OF_ROLES = "kube-system"
_CRD = Id("CustomResourceDefinition", "", "reservations.reserver.io")


def preflight(
    target: Target,
    filename: Annotated[list[str] | None, FILES] = None,
    to: Annotated[
        str, typer.Option(metavar="VERSION", help="The version to go to. Default: this command's.")
    ] = "",
    form: ReportOption = Report.TABLE,
) -> None:
    """Report what an upgrade, or a rollback, would change in this cluster.

    The command changes nothing. Use the command of the newer version. With -f, give all manifests
    that you will apply: the report then also names objects that are left over or cannot be applied,
    and changes of rights, CRDs and configuration. Each thing to do is a line, with its remedy.

    Exit status: 0 nothing to do; 1 something to do; 2 wrong usage; 3 the API server does not
    answer.

    Examples:
        kubectl kustomize . | reserver preflight -f -
        helm template release charts/reserver | reserver preflight -f -
        kubectl kustomize old | reserver preflight --to 0.1.0 -f -
    """
    there = _read(filename or [], target.reserver_namespace)
    version = _version(to)
    found = interrupt.run(_findings(target, there, version))
    show(found, form)
    if not all(each.is_ok for each in found):
        raise typer.Exit(ExitStatus.REFUSED)


def _own() -> tuple[int, int]:
    """Return major and minor of this command's version."""
    match = _VERSION.match(metadata.version(DISTRIBUTION))
    assert match is not None  # noqa: S101 - a test reads it
    return int(match[1]), int(match[2])


def _version(text: str) -> tuple[int, int]:
    """Return major and minor of a version, of this command's if the text is empty."""
    own = _own()
    match = _VERSION.fullmatch(text)
    if text and match is None:
        raise WrongUsage(f"--to: {text!r} is not a version; write for example 0.1.0")
    wanted = (int(match[1]), int(match[2])) if match else own
    if wanted > own:
        problem = f"{text} is newer than this command ({metadata.version(DISTRIBUTION)})"
        raise WrongUsage(f"--to: {problem}; run the preflight of that version")
    return wanted


def _read(filenames: list[str], home: str) -> dict[Id, Object]:
    """Return the objects of manifests."""
    documents = read_files(filenames) if filenames else []
    if broken := [each for each in documents if not isinstance(each.value, dict)]:
        problem = broken[0].problem or "is not a Kubernetes object; give manifests"
        raise WrongUsage(f"{broken[0].where}: {problem}")
    found = preflight_files.identified((each.value for each in documents), home)
    if documents and not found:
        raise WrongUsage(f"{documents[0].where}: has no manifest of Reserver")
    return found


async def _findings(
    target: Target, there: dict[Id, Object], version: tuple[int, int]
) -> list[Finding]:
    async with progress("Checking"):
        return await calling(
            target,
            lambda client, _: _Looking(client, target.reserver_namespace).all(there, version),
        )


class _Looking:
    """Fetches what there is, and asks for findings about it."""

    def __init__(self, client: Any, home: str) -> None:  # noqa: ANN401 - `ApiClient`, imported late
        self._client = client
        self._home = home

    async def all(self, there: dict[Id, Object], version: tuple[int, int]) -> list[Finding]:
        """Return all findings, one for each check that has nothing to say."""
        unknown = _unknown_to(there, version)
        written = [*await self._keys(), *await self._objects()]
        moves = await self._items(podmove.COLLECTION)
        keeps_seats = "owners[].replaces" not in unknown({"owners": [{"replaces": {}}]})
        found = [
            *preflight_holds.of_entries(written),
            *preflight_holds.of_fields(written, unknown, is_strict=version < _LENIENT_SINCE),
            *preflight_holds.of_quotas(written, await self._default(), self._home),
            *preflight_holds.of_moves(moves, keeps_seats=keeps_seats),
            *(await self._of_features(there, version)),
            *(await self._of_files(there) if there else ()),
        ]
        is_upgrade = bool(there) and version == _own()
        if is_upgrade:
            nodes = await self._items("/api/v1/nodes")
            found += preflight_programs.of_ceiling(written, nodes, there, self._home)
            found += preflight_programs.of_settings(there)
        checks = (
            "entries",
            "fields",
            "quotas",
            "moves",
            "features",
            *(("leftovers", "apply") if there else ()),
            *(("ceiling", "settings") if is_upgrade else ()),
        )
        named = {each.check for each in found}
        quiet = [Finding(each, True, "nothing to do") for each in checks if each not in named]
        return sorted([*found, *quiet], key=lambda each: each.is_ok)

    async def _get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Return the API server's answer; repeat the request while it is busy."""
        backoff = Backoff(0.5, 3.0)
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                answer: bytes = await self._client.get(path, params)
            except ApiError as exc:
                if not (exc.is_away and exc.status and time.monotonic() < deadline):
                    raise
            else:
                return answer
            await backoff.sleep()

    async def _items(self, path: str, **params: str) -> list[dict[str, Any]]:
        """Return the objects of a path; none where the API server has no such kind."""
        try:
            items: list[dict[str, Any]] = json.loads(await self._get(path, params))["items"]
        except ApiError as exc:
            if not exc.is_absent:
                raise
            return []
        return items

    async def _keys(self) -> list[WrittenSpec]:
        path, now = f"/api/v1/namespaces/{self._home}/configmaps", time.time()
        found = {each["metadata"]["name"]: each for each in await self._items(path)}
        written: list[WrittenSpec] = []
        for name, each in found.items():
            if (each["metadata"].get("labels") or {}).get(STORE_LABEL) == "true":
                companion = found.get(companion_name(name), {}).get("data") or {}
                configmap = decode(LabelledConfigMap, json.dumps(each).encode())
                written += preflight_holds.keys_of(configmap, companion, now)
        return written

    async def _objects(self) -> list[WrittenSpec]:
        now = time.time()
        items = (json.dumps(each).encode() for each in await self._items(COLLECTION))
        decoded = (decode(ReservationObject, each) for each in items)
        return [preflight_holds.object_of(each, self._home, now) for each in decoded]

    async def _default(self) -> Quota | None:
        """Return the default quota if the running version has no quotas; else it judges by them."""
        try:
            await self._get(quota_codec.COLLECTION)
        except ApiError as exc:
            if not exc.is_absent:
                raise
            return quota_codec.parse_default(DEFAULT_QUOTA)
        return None

    async def _of_features(
        self, there: Mapping[Id, Object], version: tuple[int, int]
    ) -> Iterator[Finding]:
        found = {
            plural: await self._items(f"{_GROUP}/{plural}") for plural in preflight_holds.REMEDIES
        }
        return preflight_holds.of_features(found, there, is_first=version < _LENIENT_SINCE)

    async def _of_files(self, there: dict[Id, Object]) -> Iterator[Finding]:
        here: dict[Id, Object] = {}
        for kind, (_, _, is_namespaced) in KINDS.items():
            is_role = kind.startswith("Role")
            wheres = (self._home, _NAMESPACES_OF_ROLES) if is_role else (self._home,)
            for where in wheres:
                for each in await self._items(KINDS[kind].collection(where)):
                    id_ = Id(kind, where if is_namespaced else "", each["metadata"]["name"])
                    here[id_] = each
        pods = await self._items(f"/api/v1/namespaces/{self._home}/pods")
        labels = [each["metadata"].get("labels") or {} for each in pods]
        server = json.loads(await self._get("/version"))["gitVersion"]
        return chain(
            preflight_files.of_apply(here, there),
            preflight_files.of_stores(here, there),
            preflight_files.of_services(here, there, labels),
            preflight_files.of_leftovers(here, there),
            preflight_programs.of_scheduler(here, there, server),
            preflight_files.of_crds(here, there),
            preflight_files.of_rights(here, there),
        )


def _unknown_to(there: dict[Id, Object], version: tuple[int, int]) -> Unknown:
    """Return what names the fields that the other version does not have.

    Its CRD says it, if the files have it: entries of ConfigMaps have these, and ``placements``.
    """
    if _CRD in there:
        schema = preflight_files.spec_schema(there[_CRD])
        known = {**schema, "properties": {**schema.get("properties", {}), "placements": {}}}
        return partial(preflight_files.unknown_fields, schema=known)

    def unknown(spec: Any) -> Iterator[str]:  # noqa: ANN401 - whatever YAML can hold
        said = spec if isinstance(spec, dict) else {}
        if version >= _LENIENT_SINCE:
            yield from known_part(said, "", was_in_force=True).ignored
            return
        owners = said.get("owners")
        listed = owners if isinstance(owners, list) else ()
        names = {f"owners[].{name}" for each in listed if isinstance(each, dict) for name in each}
        yield from map(printable, sorted({*map(str, said), *names} - _FIRST))

    return unknown
