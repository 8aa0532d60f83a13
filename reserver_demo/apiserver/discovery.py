"""Discovery and OpenAPI: the served resources, and their fields."""

from __future__ import annotations

from reserver_demo.apiserver.resource import Resource
from reserver_demo.apiserver.resources import RESOURCES
from reserver_demo.apiserver.schema import DOCUMENT
from reserver_demo.apiserver.status import Json

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
MERGES = ("application/json-patch+json", "application/merge-patch+json")
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def patch_types(resource: Resource) -> tuple[str, ...]:
    """Return the media types of the patches that a resource accepts."""
    return (*MERGES, *((STRATEGIC,) if resource.schema else ()), APPLY)


VERSION: Json = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.0+reserver-sim",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
"""The Kubernetes version that this server imitates, with a suffix that marks the imitation."""


def groups() -> list[tuple[str, str]]:
    """Return the served groups and versions, the core group first."""
    return sorted({(resource.group, resource.version) for resource in RESOURCES})


def group_path(group: str, version: str) -> str:
    """Return the path under which a group version is served, without a leading slash."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def core_versions() -> Json:
    """Answer `/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list() -> Json:
    """Answer `/apis`."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [api_group(group, version) for group, version in groups() if group],
    }


def api_group(group: str, version: str) -> Json:
    """Answer `/apis/GROUP`."""
    served = {"groupVersion": f"{group}/{version}", "version": version}
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": group,
        "versions": [served],
        "preferredVersion": served,
    }


def resource_list(group: str, version: str) -> Json:
    """Answer `/api/v1` and `/apis/GROUP/VERSION`."""
    served = [r for r in RESOURCES if (r.group, r.version) == (group, version)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [entry for resource in served for entry in _entries(resource)],
    }


def _entries(resource: Resource) -> list[Json]:
    main: Json = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(_VERBS),
    }
    if resource.short_names:
        main["shortNames"] = list(resource.short_names)
    if resource.categories:
        main["categories"] = list(resource.categories)
    entries = [main]
    for action, kind in resource.actions.items():
        entries.append(_subresource(resource, action, kind, ["create"]))
    if resource.has_status:
        entries.append(_subresource(resource, "status", resource.kind, ["get", "patch", "update"]))
    return entries


def _subresource(resource: Resource, name: str, kind: str, verbs: list[str]) -> Json:
    entry: Json = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": kind,
        "verbs": verbs,
    }
    if kind == "Eviction":
        entry |= {"group": "policy", "version": "v1"}
    return entry


def openapi_index() -> Json:
    """Answer `/openapi/v3`."""
    return {
        "paths": {
            group_path(*served): {"serverRelativeURL": f"/openapi/v3/{group_path(*served)}"}
            for served in groups()
        }
    }


def openapi_document(group: str, version: str) -> Json:
    """Answer `/openapi/v3/...`: the types, and the patch types of each kind.

    From it kubectl learns that the server validates fields, and how lists merge.
    """
    served = [r for r in RESOURCES if (r.group, r.version) == (group, version)]
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": {_item_path(resource): {"patch": _patch(resource)} for resource in served},
        "components": {
            "schemas": DOCUMENT | {_type_name(r): r.structure for r in served if not r.schema}
        },
    }


def _type_name(resource: Resource) -> str:
    return ".".join((*reversed(resource.group.split(".")), resource.version, resource.kind))


def _item_path(resource: Resource) -> str:
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"/{group_path(resource.group, resource.version)}{scope}/{resource.plural}/{{name}}"


def _patch(resource: Resource) -> Json:
    return {
        "parameters": [
            {"in": "query", "name": name, "schema": {"type": "string", "uniqueItems": True}}
            for name in ("dryRun", "fieldManager", "fieldValidation")
        ],
        "requestBody": {"content": {media: {"schema": {}} for media in patch_types(resource)}},
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": {
            "group": resource.group,
            "kind": resource.kind,
            "version": resource.version,
        },
    }
