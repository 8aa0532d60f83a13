"""The rights that the manifests grant Reserver, and the rights in the API server's audit log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from http.client import CREATED
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_CONFIG = Path(__file__).parents[2] / "scheduler-config"
CORE = _CONFIG / "core/rbac-reserver.yaml"
MOVES = _CONFIG / "components/moves/rbac.yaml"
SURGE = _CONFIG / "components/surge/rbac.yaml"
AUTOSCALERS = _CONFIG / "components/autoscalers/rbac.yaml"
BUFFERS = _CONFIG / "components/capacity-buffers/rbac.yaml"
MAINTENANCE = _CONFIG / "components/maintenance/rbac.yaml"
PROVISIONING = _CONFIG / "components/provisioning/rbac.yaml"
WEBHOOKS = _CONFIG / "components/webhooks/rbac.yaml"
LENDING = _CONFIG / "components/lending/rbac.yaml"
RESERVER = "system:serviceaccount:reserver-system:reserver"
MOVER = f"{RESERVER}-mover"
"""Reserver with the rights of these components, too (tests/e2e/apart/conftest.py)."""

HOOKS = f"{RESERVER}-hooks"
"""Reserver with the rights of components/webhooks, too."""

LENDER = f"{RESERVER}-lender"
"""Reserver with the rights of components/lending, too (tests/e2e/test_loans.py)."""

_ROLE = re.compile(r' of ((?:Cluster)?Role "[^"]+") to ServiceAccount ')
"""In the reason of a decision (plugin/pkg/auth/authorizer/rbac/rbac.go)."""


class Right(NamedTuple):
    """One verb on one kind of resource.

    Attributes:
        role: that grants it, as the API server calls it; empty if it was refused.
        group: API group.
        resource: plural, with the subresource.
        name: of the only allowed object; empty for any.
        verb: in the words of RBAC.
    """

    role: str
    group: str
    resource: str
    name: str
    verb: str


def granted(file: Path = CORE) -> set[Right]:
    """Return the rights that a manifest grants to Reserver's service account."""
    documents = yaml.safe_load_all(file.read_text())
    return {
        Right(f'{role["kind"]} "{role["metadata"]["name"]}"', group, resource, name, verb)
        for role in documents
        for rule in role.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def requested(audit_logs: Iterable[Path], user: str) -> set[Right]:
    """Return the rights that a service account has used; a refused one has no role."""
    rights = granted() | granted(WEBHOOKS)
    named = {(right.resource, right.name) for right in rights if right.name}
    used: set[Right] = set()
    for audit_log in audit_logs:
        with audit_log.open() as lines:
            events = (each for each in map(json.loads, lines) if each["user"]["username"] == user)
            used.update(_rights(events, named))
    return used


def _rights(events: Iterable[dict[str, Any]], named: set[tuple[str, str]]) -> Iterator[Right]:
    for event in events:
        notes, found = event.get("annotations", {}), event.get("objectRef", {})
        resource = "/".join(filter(None, (found.get("resource"), found.get("subresource"))))
        reason = _ROLE.search(notes.get("authorization.k8s.io/reason", ""))
        name = found.get("name", "") if event["verb"] != "create" else ""
        asked = Right(
            reason[1] if reason else "",
            found.get("apiGroup", ""),
            resource or event["requestURI"],
            name if (resource, name) in named else "",
            event["verb"],
        )
        yield asked
        if event["verb"] == "patch" and event.get("responseStatus", {}).get("code") == CREATED:
            yield asked._replace(verb="create")  # An apply that creates needs that right, too.
