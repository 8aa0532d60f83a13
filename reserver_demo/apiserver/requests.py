"""Parses requests: body, options, and accepted media types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

import msgspec
from aiohttp import web

from reserver.errors import InvalidInput
from reserver.stores.codec.document import parse
from reserver_demo.apiserver import protobuf
from reserver_demo.apiserver.deletion import DeleteOptions
from reserver_demo.apiserver.discovery import APPLY, patch_types
from reserver_demo.apiserver.patch import json_patch, merge_patch
from reserver_demo.apiserver.resource import Resource
from reserver_demo.apiserver.schema import Conformed, MismatchError
from reserver_demo.apiserver.status import (
    Cause,
    Json,
    StatusError,
    bad_request,
    invalid,
    invalid_value,
    not_acceptable,
    required,
    too_large,
    unsupported_media,
)
from reserver_demo.apiserver.strategic import strategic_merge

MAX_BODY = 3 * 1024 * 1024
"""Bound on the body of a request, in bytes (`MaxRequestBodyBytes`)."""

_JSON = "application/json"
_MANAGER = "is required for apply patch"
_BODY_TYPES = (_JSON,)
_YAML_TYPES = ("application/yaml", APPLY)
_OBJECT_TYPES = (_JSON, "application/yaml", protobuf.MEDIA)


async def read_json(request: web.Request, accepted: Sequence[str] = _BODY_TYPES) -> object:
    """Read a body of one of the accepted media types; return None for an empty body.

    Raises:
        StatusError: 400, 413 or 415.
    """
    if request.headers.get("Content-Type") is not None and request.content_type not in accepted:
        raise unsupported_media(accepted)
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large(f"limit is {MAX_BODY}") from None
    if request.content_type == protobuf.MEDIA and body:
        return protobuf.decode(body)
    try:
        if request.content_type in _YAML_TYPES:
            return parse(body.decode(), MAX_BODY)
        value: object = msgspec.json.decode(body) if body else None
    except (msgspec.DecodeError, UnicodeDecodeError, InvalidInput) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error
    return value


async def read_object(
    request: web.Request, kind: str, api_version: str, decode: Callable[[Json], Conformed]
) -> Conformed:
    """Read an object of a kind; `decode` converts it to its type.

    Raises:
        StatusError: 400, 413 or 415.
    """
    body = await read_json(request, _OBJECT_TYPES)
    if not isinstance(body, dict):
        raise bad_request("couldn't get version/kind; json parse error: not an object")
    if (given := body.get("kind", kind)) != kind:
        raise bad_request(
            f'{given} in version "{body.get("apiVersion")}" cannot be handled as a {kind}: '
            "unknown conversion"
        )
    if (version := body.get("apiVersion", api_version)) != api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({api_version})"
        )
    try:
        conformed = decode(body)
    except MismatchError as error:
        raise _cannot_handle(kind, api_version, str(error)) from error
    check_strictness(request, kind, api_version, conformed.unknown)
    return conformed


def _cannot_handle(kind: str, api_version: str, problem: str) -> Exception:
    version = api_version.rpartition("/")[2]
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}')


def check_strictness(
    request: web.Request, kind: str, api_version: str, unknown: Sequence[str]
) -> None:
    """Refuse unknown fields with `fieldValidation=Strict`.

    Raises:
        StatusError: 400.
    """
    if unknown and request.query.get("fieldValidation") == "Strict":
        fields = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise _cannot_handle(kind, api_version, f"strict decoding error: {fields}")


def warnings(request: web.Request, unknown: Sequence[str]) -> list[tuple[str, str]]:
    """Return warning headers for unknown fields; none with `fieldValidation=Ignore`."""
    if request.query.get("fieldValidation") == "Ignore":
        return []
    return [("Warning", f'299 - "unknown field \\"{path}\\""') for path in unknown]


@dataclass(slots=True)
class Patch:
    """A patch to apply within the transaction; `unknown` are the unknown fields of the result."""

    resource: Resource
    apply: Callable[[Json], Json]
    request: web.Request
    unknown: tuple[str, ...] = ()

    def __call__(self, current: Json) -> Json:
        """Return the object with the patch applied, decoded into its type.

        Raises:
            StatusError: 400, 413 or 422.
        """
        resource = self.resource
        patched = self.apply(current)
        try:
            if any(patched.get(field) != current[field] for field in ("kind", "apiVersion")):
                raise MismatchError("unknown conversion")
            conformed = resource.decode(patched)
        except MismatchError as error:
            shown = msgspec.json.encode(patched).decode().replace('"', '\\"')
            raise invalid("", "", [invalid_value("patch", shown, str(error))]) from error
        self.unknown = conformed.unknown
        check_strictness(self.request, resource.kind, resource.api_version, self.unknown)
        return conformed.value


async def read_patch(request: web.Request, resource: Resource) -> Patch:
    """Read a patch of a type that the resource accepts.

    Raises:
        StatusError: 400, 413 or 415.
    """
    body = await read_json(request, patch_types(resource))
    if request.content_type == "application/json-patch+json":
        return Patch(resource, lambda current: json_patch(current, body), request)
    if not isinstance(body, dict):
        raise bad_request("Invalid JSON Patch")
    patch: Json = body
    if request.content_type == "application/merge-patch+json":
        return Patch(resource, lambda current: merge_patch(current, patch), request)
    schema = resource.schema or ""
    return Patch(resource, lambda current: strategic_merge(current, patch, schema), request)


async def read_configuration(request: web.Request, resource: Resource) -> Conformed:
    """Read the configuration of a server-side apply.

    Raises:
        StatusError: 400, 413, 422, or 500 for an unknown field.
    """
    if not request.query.get("fieldManager"):
        raise invalid("PatchOptions.meta.k8s.io", "", [required("fieldManager", _MANAGER)])
    body = await read_json(request, [APPLY])
    if not isinstance(body, dict):
        raise bad_request("error decoding YAML: not an object")
    if (body.get("apiVersion"), body.get("kind")) != (resource.api_version, resource.kind):
        raise bad_request(
            f"the API version and kind in the data do not match {resource.api_version} "
            f"{resource.kind}"
        )
    try:
        conformed = resource.typed_only(body)
    except MismatchError as error:
        raise bad_request(str(error)) from error
    if conformed.unknown:
        problem = f".{conformed.unknown[0]}: field not declared in schema"
        message = f"failed to create typed patch object: {problem}"
        raise StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)
    return conformed


def field_manager(request: web.Request) -> str:
    """Return the field manager of a request."""
    agent = request.headers.get("User-Agent", "").partition("/")[0]
    return request.query.get("fieldManager") or agent or "unknown"


def dry_run(request: web.Request) -> bool:
    """Return whether a request is a dry run.

    Raises:
        StatusError: 422 for an unknown directive.
    """
    directive = request.query.get("dryRun", "")
    if directive not in {"", "All"}:
        cause = Cause(
            "FieldValueNotSupported",
            f'Unsupported value: "{directive}": supported values: "All"',
            "dryRun",
        )
        raise invalid("CreateOptions.meta.k8s.io", "", [cause])
    return bool(directive)


def delete_options(request: web.Request, body: object) -> DeleteOptions:
    """Read the options of a deletion from the body and the query.

    Raises:
        StatusError: 400.
    """
    given = body if isinstance(body, dict) else {}
    preconditions = given.get("preconditions") or {}
    grace = given.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    try:
        seconds = None if grace is None else int(grace)
    except ValueError as error:
        raise bad_request(f"gracePeriodSeconds: {error}") from error
    return DeleteOptions(
        grace=seconds,
        uid=preconditions.get("uid"),
        revision=preconditions.get("resourceVersion"),
        dry_run=dry_run(request) or bool(given.get("dryRun")),
    )


def wants_table(request: web.Request) -> bool:
    """Return whether the client prefers a table to the objects.

    Raises:
        StatusError: 406 if it accepts neither.
    """
    accept = request.headers.get("Accept") or "*/*"
    for media in accept.split(","):
        name, *parameters = (part.strip() for part in media.split(";"))
        if name not in {"*/*", "application/*", _JSON}:
            continue
        form = next((p.partition("=")[2] for p in parameters if p.startswith("as=")), "")
        if form == "Table" and "v=v1" in parameters:
            return True
        if not form:
            return False
    raise not_acceptable(_BODY_TYPES)
