"""Findings about the files of another version, compared with the objects of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from reserver.cli.doctor import Finding
from reserver.printable import printable
from reserver.stores.configmap.entries import STORE_LABEL

Object = Mapping[str, Any]

CONFIGURATION = "kube-scheduler-config"
"""The prefix of the names of ConfigMaps with kube-scheduler's configuration, in any version."""

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class ManifestKind(NamedTuple):
    """A kind of object of the manifests.

    Attributes:
        prefix: of its paths in the API.
        plural: its name there.
        is_namespaced: its objects are in a namespace.
    """

    prefix: str
    plural: str
    is_namespaced: bool = True

    def collection(self, namespace: str) -> str:
        """Return the path of its objects, of a namespace if there is one."""
        where = f"/namespaces/{namespace}" if self.is_namespaced else ""
        return f"{self.prefix}{where}/{self.plural}"


_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
KINDS = {
    "ConfigMap": ManifestKind("/api/v1", "configmaps"),
    "Service": ManifestKind("/api/v1", "services"),
    "ServiceAccount": ManifestKind("/api/v1", "serviceaccounts"),
    "Deployment": ManifestKind("/apis/apps/v1", "deployments"),
    "CronJob": ManifestKind("/apis/batch/v1", "cronjobs"),
    "PodDisruptionBudget": ManifestKind("/apis/policy/v1", "poddisruptionbudgets"),
    "NetworkPolicy": ManifestKind("/apis/networking.k8s.io/v1", "networkpolicies"),
    "Role": ManifestKind(_RBAC, "roles"),
    "RoleBinding": ManifestKind(_RBAC, "rolebindings"),
    "ClusterRole": ManifestKind(_RBAC, "clusterroles", is_namespaced=False),
    "ClusterRoleBinding": ManifestKind(_RBAC, "clusterrolebindings", is_namespaced=False),
    "CustomResourceDefinition": ManifestKind(
        "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", is_namespaced=False
    ),
    "ValidatingAdmissionPolicy": ManifestKind(
        _ADMISSION, "validatingadmissionpolicies", is_namespaced=False
    ),
    "ValidatingAdmissionPolicyBinding": ManifestKind(
        _ADMISSION, "validatingadmissionpolicybindings", is_namespaced=False
    ),
    "MutatingWebhookConfiguration": ManifestKind(
        _ADMISSION, "mutatingwebhookconfigurations", is_namespaced=False
    ),
    "ValidatingWebhookConfiguration": ManifestKind(
        _ADMISSION, "validatingwebhookconfigurations", is_namespaced=False
    ),
}
"""The objects in the manifests of a version."""


class Id(NamedTuple):
    """An object: its kind, namespace (empty for none) and name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return it as `kubectl` names it."""
        return f"{self.kind.lower()}/{self.name}"

    def command(self, verb: str, after: str = "") -> str:
        """Return the kubectl command with a verb for it, and what stands after."""
        where = f"--namespace {self.namespace} " if self.namespace else ""
        return f"`kubectl {where}{verb} {self}{after}`"


def identified(objects: Iterable[Object], home: str) -> dict[Id, Object]:
    """Return the objects of kinds that manifests have, by id; `home` is Reserver's namespace."""
    found = {}
    for each in objects:
        kind, metadata = str(each.get("kind")), each.get("metadata") or {}
        if kind in KINDS and "name" in metadata:
            namespace = metadata.get("namespace") or home if KINDS[kind].is_namespaced else ""
            found[Id(kind, namespace, metadata["name"])] = each
    return found


def is_ours(id_: Id, found: Object) -> bool:
    """Return whether an object is of Reserver's manifests, by its name; Helm removes its own."""
    labels = found["metadata"].get("labels") or {}
    if labels.get("app.kubernetes.io/managed-by") == "Helm":
        return False
    if id_.kind == "ConfigMap":
        return id_.name.startswith(CONFIGURATION)
    if id_.kind == "CustomResourceDefinition":
        return id_.name.endswith(".reserver.io")
    return id_.name == "reserver" or id_.name.startswith("reserver-")


def of_leftovers(here: Mapping[Id, Object], there: Collection[Id]) -> Iterator[Finding]:
    """Yield findings about objects that the files do not have, each with what removes it."""
    for id_ in sorted(here.keys() - set(there)):
        if not is_ours(id_, here[id_]):
            continue
        said = f"{id_} is not in the files"
        remedy = f"once they are applied, run {id_.command('delete')}"
        is_kept = id_.kind == "CustomResourceDefinition"
        if is_kept:
            remedy = f"keep it, or lose its objects: {id_.command('delete')}"
        yield Finding("leftovers", is_kept, said, remedy)


def of_apply(here: Mapping[Id, Object], there: Mapping[Id, Object]) -> Iterator[Finding]:
    """Yield findings about objects that `kubectl apply` cannot change."""
    for id_ in sorted(here.keys() & there.keys()):
        old, new = here[id_], there[id_]
        said = ""
        if old.get("immutable") and (
            not new.get("immutable") or old.get("data") != new.get("data")
        ):
            said = f"{id_} is immutable, and differs"
        elif "Binding" in id_.kind and _role(old) != _role(new):
            said = f"{id_} is for another role, which cannot be changed"
        elif id_.kind == "Deployment" and _selector(old) != _selector(new):
            said = f"{id_} selects other pods, which cannot be changed"
        elif id_.kind == "Deployment" and _rolls(old) and not _rolls(new):
            # Who applies from the server removes no rollingUpdate that another manager has set.
            said = f"{id_} is rolled out, and would be recreated"
        if said:
            options = " --cascade=orphan" if id_.kind == "Deployment" else ""
            remedy = f"before the files are applied, run {id_.command('delete' + options)}"
            yield Finding("apply", False, said, remedy)


def of_stores(here: Mapping[Id, Object], there: Mapping[Id, Object]) -> Iterator[Finding]:
    """Yield findings about stores whose entries `kubectl apply` would remove.

    It removes what its annotation says that it has applied. `kubectl create` and `replace` write
    the whole object there if they are given one with this annotation, as a backup has it.
    """
    for id_ in sorted(here.keys() & there.keys()):
        metadata = here[id_]["metadata"]
        if STORE_LABEL not in (metadata.get("labels") or {}):
            continue
        applied = _applied((metadata.get("annotations") or {}).get(_APPLIED, "{}"))
        entries = applied & {*(here[id_].get("data") or ())}
        if lost := entries - {*(there[id_].get("data") or ())}:
            said = f"{id_} would lose {len(lost)} entries to `kubectl apply`, such as {min(lost)}"
            remedy = f"before that, run {id_.command('annotate', f' {_APPLIED}-')}"
            yield Finding("apply", False, said, remedy)


class _Applied(msgspec.Struct):
    """A ConfigMap as `kubectl apply` has last applied it."""

    data: dict[str, Any] | None = None


def _applied(annotation: str) -> set[str]:
    """Return the data keys of an annotation; none of one that `kubectl` could not read either."""
    with suppress(msgspec.DecodeError):
        return {*(msgspec.json.decode(annotation, type=_Applied).data or ())}
    return set()


def _rolls(deployment: Object) -> bool:
    strategy: Object = deployment["spec"].get("strategy") or {}
    return bool(strategy.get("type") != "Recreate")


def _role(binding: Object) -> tuple[str, str]:
    role = binding.get("roleRef") or {}
    return role.get("kind", ""), role.get("name", "")


def _selector(deployment: Object) -> Any:  # noqa: ANN401 - whatever JSON can hold
    return deployment["spec"].get("selector")


def of_services(
    here: Mapping[Id, Object], there: Mapping[Id, Object], pods: Collection[Mapping[str, str]]
) -> Iterator[Finding]:
    """Yield findings about Services that would select none of the running pods, by their labels."""
    for id_ in sorted(here.keys() & there.keys()):
        if id_.kind != "Service":
            continue
        old, new = (each[id_]["spec"].get("selector") or {} for each in (here, there))
        selected = [labels for labels in pods if old.items() <= labels.items()]
        if selected and not any(new.items() <= labels.items() for labels in selected):
            more = [f"{key}={value}" for key, value in new.items() if old.get(key) != value]
            which = ",".join(f"{key}={value}" for key, value in old.items())
            label = f"kubectl --namespace {id_.namespace} label pods -l {which} {' '.join(more)}"
            said = f"{id_} would select no pod that runs: {', '.join(more)} is missing"
            yield Finding("services", False, said, f"before the files are applied, run `{label}`")


def of_rights(here: Mapping[Id, Object], there: Mapping[Id, Object]) -> Iterator[Finding]:
    """Yield findings about roles whose rules differ: nothing is to be done, but know them."""
    for id_ in sorted(there):
        if id_.kind not in {"Role", "ClusterRole"}:
            continue
        old, new = _rights(here.get(id_)), _rights(there[id_])
        gained, lost = sorted(new - old), sorted(old - new)
        told = [f"gains {', '.join(gained)}"] if gained else []
        told += [f"loses {', '.join(lost)}"] if lost else []
        if told:
            yield Finding("rights", True, f"{id_} {'; '.join(told)}")


def _rights(role: Object | None) -> set[str]:
    found = set[str]()
    for rule in (role or {}).get("rules") or ():
        names = f" {' '.join(rule['resourceNames'])}" if rule.get("resourceNames") else ""
        resources = [
            f"{resource}.{group}" if group else resource
            for group in rule.get("apiGroups") or [""]
            for resource in rule.get("resources") or ()
        ]
        for what in (*resources, *(rule.get("nonResourceURLs") or ())):
            found |= {f"{verb} {what}{names}" for verb in rule.get("verbs") or ()}
    return found


def of_crds(here: Mapping[Id, Object], there: Mapping[Id, Object]) -> Iterator[Finding]:
    """Yield findings about CRDs whose fields differ; `of_fields` says which are in use."""
    for id_ in sorted(there):
        if id_.kind != "CustomResourceDefinition" or id_ not in here:
            continue
        old, new = (set(_paths(spec_schema(each[id_]))) for each in (here, there))
        told = [f"adds {', '.join(_topmost(new - old))}"] if new - old else []
        told += [f"drops {', '.join(_topmost(old - new))}"] if old - new else []
        if told:
            yield Finding("CRDs", True, f"{id_.name}: {'; '.join(told)}")


def _topmost(paths: Collection[str]) -> list[str]:
    """Return the paths that lie below no other of them."""
    return [
        path for path in sorted(paths) if path.rpartition(".")[0].removesuffix("[]") not in paths
    ]


def spec_schema(crd: Object) -> Object:
    """Return the schema of the spec of a CRD's stored version."""
    versions = crd["spec"].get("versions") or ()
    stored: Object = next((each for each in versions if each.get("storage")), {})
    properties = stored.get("schema", {}).get("openAPIV3Schema", {}).get("properties", {})
    schema: Object = properties.get("spec", {})
    return schema


def _paths(schema: Object, path: str = "") -> Iterator[str]:
    for name, part in (schema.get("properties") or {}).items():
        yield f"{path}{name}"
        yield from _paths(part, f"{path}{name}.")
    if "items" in schema:
        yield from _paths(schema["items"], f"{path.removesuffix('.')}[].")


def unknown_fields(value: Any, schema: Object, path: str = "") -> Iterator[str]:  # noqa: ANN401 - a spec
    """Yield the fields of a spec that a schema does not have: the API server drops them.

    A value that a field cannot have there follows the field's name: ``mode: SurgeFirst``.
    """
    known = schema.get("properties")
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path.removesuffix('.')}: {printable(str(value))}"
    if isinstance(value, dict) and known and "additionalProperties" not in schema:
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return
        for name, part in value.items():
            if name in known:
                yield from unknown_fields(part, known[name], f"{path}{name}.")
            else:
                yield f"{path}{printable(str(name))}"
    elif isinstance(value, list) and "items" in schema:
        for part in value:
            yield from unknown_fields(part, schema["items"], f"{path.removesuffix('.')}[].")
