"""Creates and updates objects, with the order of checks of apiserver/pkg/registry.

This module is synchronous: without an `await` each request is one transaction.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterable
from http import HTTPStatus

from reserver_demo.apiserver.fieldmanagers import applied, updated_managers
from reserver_demo.apiserver.resource import Resource
from reserver_demo.apiserver.resources import NAMESPACE_RESOURCE
from reserver_demo.apiserver.status import (
    Json,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from reserver_demo.apiserver.store import Key, Store, Stored, version
from reserver_demo.apiserver.validation import immutable_metadata_causes, metadata_causes
from reserver_demo.clock import Clock, rfc3339

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_GENERATED = 63
_SET_BY_SERVER = (
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
)
STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)

_OTHER_NAMESPACE = (
    "the namespace of the provided object does not match the namespace sent on the request"
)


class Registry:
    """The writes of all resources."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock

    def get(self, resource: Resource, key: Key) -> Stored:
        """Return an object.

        Raises:
            StatusError: 404.
        """
        stored = self.store.collection(resource.plural).get(key)
        if stored is None:
            raise not_found(resource.qualified, key.name)
        return stored

    def contents(self, plural: str) -> Iterable[Json]:
        """Return the contents of all objects of a resource."""
        return (stored.content for stored in self.store.collection(plural).items())

    def apply(
        self,
        resource: Resource,
        key: Key,
        config: Json,
        *,
        manager: str,
        force: bool,
        dry_run: bool = False,
    ) -> tuple[Stored, bool]:
        """Apply a field manager's configuration; return the object, and whether it is new.

        Raises:
            StatusError: 400, 403, 404 (absent namespace), 409 or 422.
        """
        now = rfc3339(self.clock.now())

        def change(live: Json | None) -> Json:
            return applied(live, config, resource.typed, manager, force=force, now=now)

        if self.store.collection(resource.plural).get(key) is None:
            body = change(None)
            body["metadata"] = {"name": key.name, **body["metadata"]}
            managed = body["metadata"]["managedFields"]
            decoded = resource.decode(body).value
            stored = self.create(resource, key.namespace, decoded, managed=managed, dry_run=dry_run)
            return stored, True
        return self.update(resource, key, change, manager=None, dry_run=dry_run), False

    def create(
        self,
        resource: Resource,
        namespace: str,
        body: Json,
        *,
        managed: list[Json] | None = None,
        dry_run: bool = False,
    ) -> Stored:
        """Create an object; `managed` are the managedFields of an applied object.

        Raises:
            StatusError: 400, 403, 404 (absent namespace), 409 or 422.
        """
        metadata = body.setdefault("metadata", {})
        self._admit_namespace(resource, namespace, metadata)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = _generated(metadata["generateName"])
        if metadata.get("resourceVersion", "") not in {"", "0"}:
            problem = "resourceVersion should not be set on objects to be created"
            raise StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "", problem)
        for field in _SET_BY_SERVER:
            metadata.pop(field, None)
        if managed:
            metadata["managedFields"] = managed
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = rfc3339(self.clock.now())
        strategy = resource.strategy
        if causes := list(metadata_causes(metadata, resource.name_rule)):
            raise invalid(resource.qualified_kind, metadata.get("name", ""), causes)
        if causes := list(strategy.check(body)):
            raise invalid(resource.qualified_kind, metadata["name"], causes)
        strategy.admit(body, self.contents)
        strategy.prepare_create(body)
        if old := self.store.collection(resource.plural).get(Key(namespace, metadata["name"])):
            going = "deletionTimestamp" in old.content["metadata"]
            raise already_exists(resource.qualified, metadata["name"], going=going)
        return self.write(resource, body, dry_run=dry_run)

    def _admit_namespace(self, resource: Resource, namespace: str, metadata: Json) -> None:
        if metadata.get("namespace", namespace) != namespace:
            raise bad_request(_OTHER_NAMESPACE)
        if not resource.namespaced:
            return
        metadata["namespace"] = namespace
        home = self.get(NAMESPACE_RESOURCE, Key("", namespace))
        if "deletionTimestamp" in home.content["metadata"]:
            problem = (
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated"
            )
            raise forbidden(resource.qualified, metadata.get("name", ""), problem)

    def update(
        self,
        resource: Resource,
        key: Key,
        change: Callable[[Json], Json],
        *,
        subresource: str = "",
        manager: str | None = "",
        dry_run: bool = False,
    ) -> Stored:
        """Update an object; `change` gets a copy with kind and apiVersion, and returns the new one.

        `manager` is the field manager; None if `change` sets managedFields itself.

        An update without a difference is not written, as in etcd3/store.go.

        Raises:
            StatusError: 400, 404, 409 or 422.
        """
        old = self.get(resource, key)
        before = {"kind": resource.kind, "apiVersion": resource.api_version, **old.copy()}
        new = change(before)
        metadata = new.setdefault("metadata", {})
        managed = metadata.get("managedFields")
        if manager is None:
            new = resource.decode(new).value
            metadata = new["metadata"]
        _check_identity(resource, key, metadata, old)
        _keep_system_fields(metadata, old.content["metadata"])
        if subresource == "status" and resource.strategy.prepare_status is not None:
            resource.strategy.prepare_status(new, old.content)
        else:
            resource.strategy.prepare_update(new, old.content)
        if manager is not None:
            now = rfc3339(self.clock.now())
            managed = updated_managers(before, new, resource.typed, manager, now)
        if managed:
            new["metadata"]["managedFields"] = managed
        _check_update(resource, new, old.content)
        if version(new, old.revision).content == old.content:
            return old
        if _is_finished(metadata, old.content["metadata"]):
            return self.erase(resource, new, dry_run=dry_run)
        return self.write(resource, new, dry_run=dry_run)

    def write(self, resource: Resource, content: Json, *, dry_run: bool) -> Stored:
        """Store an object without checks, except in a dry run."""
        if dry_run:
            return version(content, self.store.revision)
        return self.store.put(resource.plural, content)

    def erase(self, resource: Resource, content: Json, *, dry_run: bool) -> Stored:
        """Remove an object, except in a dry run."""
        if dry_run:
            return version(content, self.store.revision)
        return self.store.remove(resource.plural, content)


def _generated(prefix: str) -> str:
    suffix = "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(_SUFFIX_LENGTH))
    return prefix[: _MAX_GENERATED - _SUFFIX_LENGTH] + suffix


def _check_identity(resource: Resource, key: Key, metadata: Json, old: Stored) -> None:
    name = metadata.setdefault("name", key.name)
    if name != key.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({key.name})"
        )
    if metadata.get("namespace", key.namespace) != key.namespace:
        raise bad_request(_OTHER_NAMESPACE)
    if key.namespace:
        metadata["namespace"] = key.namespace
    if metadata.get("resourceVersion") not in {None, "", "0", str(old.revision)}:
        raise conflict(resource.qualified, key.name, STALE)


def check_preconditions(
    resource: Resource, old: Stored, uid: str | None, revision: str | None
) -> None:
    """Refuse a write whose UID or resourceVersion is not the object's.

    Raises:
        StatusError: 409, in the words of storage/errors.go.
    """
    actual = old.content["metadata"]["uid"]
    problem = ""
    if uid and uid != actual:
        problem = f"UID in precondition: {uid}, UID in object meta: {actual}"
    elif revision and revision != str(old.revision):
        problem = (
            f"ResourceVersion in precondition: {revision}, "
            f"ResourceVersion in object meta: {old.revision}"
        )
    if problem:
        path = "/".join(part for part in (resource.plural, *old.key) if part)
        problem = (
            f"StorageError: invalid object, Code: 4, Key: /registry/{path}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: {problem}"
        )
        raise conflict(resource.qualified, old.key.name, problem)


def _keep_system_fields(metadata: Json, old: Json) -> None:
    """Restore the fields that no update changes (`rest.BeforeUpdate`)."""
    for field in ("creationTimestamp", "generation", "managedFields"):
        metadata.pop(field, None)
    for field in (
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ):
        if field in old:
            metadata[field] = old[field]
    metadata.setdefault("uid", old["uid"])


def _check_update(resource: Resource, new: Json, old: Json) -> None:
    metadata = new["metadata"]
    causes = [
        *metadata_causes(metadata, resource.name_rule),
        *immutable_metadata_causes(metadata, old["metadata"]),
        *resource.strategy.check(new),
        *resource.strategy.check_update(new, old),
    ]
    if causes:
        raise invalid(resource.qualified_kind, metadata["name"], causes)


def _is_finished(metadata: Json, old: Json) -> bool:
    """Return whether an update removed the last finalizer of a terminating object."""
    return (
        "deletionTimestamp" in metadata
        and bool(old.get("finalizers"))
        and not metadata.get("finalizers")
        and metadata.get("deletionGracePeriodSeconds", 0) == 0
    )
