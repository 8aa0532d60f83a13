"""Deletes objects: gracefully, after their finalizers, or at once.

apiserver/pkg/registry/rest/delete.go and generic/registry/store.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from reserver_demo.apiserver.registry import Registry
from reserver_demo.apiserver.resource import Resource
from reserver_demo.apiserver.resources import NAMESPACE_RESOURCE, RESOURCES
from reserver_demo.apiserver.status import Json, conflict, success
from reserver_demo.apiserver.store import Key, Stored
from reserver_demo.clock import parse_rfc3339, rfc3339


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """The options of a deletion (`metav1.DeleteOptions`).

    Attributes:
        grace: the grace period in seconds; None for the object's own.
        uid: the UID that the object must have.
        revision: the resourceVersion that the object must have.
        dry_run: whether the request is a dry run.
    """

    grace: int | None = None
    uid: str | None = None
    revision: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Deletion:
    """The result of a deletion: the present or last object, and whether it is gone."""

    last: Stored
    gone: bool


def delete(registry: Registry, resource: Resource, key: Key, options: DeleteOptions) -> Deletion:
    """Delete an object, or start its graceful deletion.

    Raises:
        StatusError: 404, or 409 for a failed precondition.
    """
    stored = registry.get(resource, key)
    check_record(resource, stored, options)
    content = stored.copy()
    marked = _mark(registry, resource, content, options)
    pending = bool(content["metadata"].get("finalizers"))
    if marked is None:
        return Deletion(stored, gone=False)
    if marked:
        stored = registry.write(resource, content, dry_run=options.dry_run)
    if resource is NAMESPACE_RESOURCE:
        _empty(registry, key.name, options)
    if pending or content["metadata"].get("deletionGracePeriodSeconds", 0) > 0:
        return Deletion(stored, gone=False)
    return Deletion(registry.erase(resource, content, dry_run=options.dry_run), gone=True)


def check_record(resource: Resource, stored: Stored, options: DeleteOptions) -> None:
    """Check the preconditions of a deletion: UID and resourceVersion.

    Raises:
        StatusError: 409, in the words of `rest.BeforeDelete`.
    """
    metadata = stored.content["metadata"]
    for name, wanted, actual, guess in (
        ("UID", options.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.revision, str(stored.revision), "modified"),
    ):
        if wanted not in {None, "", actual}:
            problem = (
                f"the {name} in the precondition ({wanted}) does not match the {name} in record "
                f"({actual}). The object might have been {guess}"
            )
            raise conflict(resource.qualified_kind, stored.key.name, problem)


def _mark(
    registry: Registry, resource: Resource, content: Json, options: DeleteOptions
) -> bool | None:
    """Set the deletionTimestamp; return False for an immediate deletion, None to do nothing."""
    metadata = content["metadata"]
    now = registry.clock.now()
    if "deletionTimestamp" in metadata:
        before = metadata.get("deletionGracePeriodSeconds", 0)
        if before == 0:
            return False
        if options.grace is None or options.grace >= before:
            return None
        grace = max(options.grace, 0)
        sooner = parse_rfc3339(metadata["deletionTimestamp"]) + timedelta(seconds=grace - before)
        metadata["deletionTimestamp"] = rfc3339(max(sooner, now))
        # The grace period may be over, but only the kubelet completes the deletion.
        metadata["deletionGracePeriodSeconds"] = 1 if sooner < now and grace else grace
        return True
    if resource is NAMESPACE_RESOURCE:
        metadata["deletionTimestamp"] = rfc3339(now)
        content["status"]["phase"] = "Terminating"
        return True
    if resource.strategy.grace is None and not metadata.get("finalizers"):
        return False
    grace = resource.strategy.grace(content, options.grace) if resource.strategy.grace else 0
    metadata["deletionTimestamp"] = rfc3339(now + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if "generation" in metadata:
        metadata["generation"] += 1
    return True


def _empty(registry: Registry, namespace: str, options: DeleteOptions) -> None:
    """Delete the objects of a namespace, as the namespace controller does, but at once."""
    force = DeleteOptions(grace=0, dry_run=options.dry_run)
    for resource in RESOURCES:
        if resource.namespaced:
            held = registry.store.collection(resource.plural).items()
            delete_all(registry, resource, (s for s in held if s.key.namespace == namespace), force)


def delete_all(
    registry: Registry, resource: Resource, targets: Iterable[Stored], options: DeleteOptions
) -> list[Stored]:
    """Delete many objects; return them in their state before."""
    deleted = list(targets)
    for stored in deleted:
        delete(registry, resource, stored.key, options)
    return deleted


def status_of(resource: Resource, deleted: Stored) -> Json:
    """Return the Status that answers the deletion of an object (`finalizeDelete`)."""
    details = {
        "name": deleted.key.name,
        "group": resource.group,
        "kind": resource.plural,
        "uid": deleted.content["metadata"]["uid"],
    }
    return success({key: value for key, value in details.items() if value})
