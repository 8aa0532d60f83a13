"""Roles for users of Reserver."""

from typing import Any

import yaml

from reserver.grpc.access import _RIGHTS
from tests.unit.manifests.documents import documents

READ = {"get", "list", "watch"}


def added(component: str, role: str) -> list[dict[str, Any]]:
    """Return the rules that a component adds to a ClusterRole."""
    (kustomization,) = documents(f"components/{component}/kustomization.yaml")
    return [
        operation["value"]
        for each in kustomization["patches"]
        if each["target"] == {"kind": "ClusterRole", "name": role}
        for operation in yaml.safe_load(each["patch"])
    ]


def test_there_is_a_role_for_each_method() -> None:
    rules = [rule for role in documents("core/rbac-users.yaml") for rule in role["rules"]]
    granted = {
        (verb, resource)
        for rule in [*rules, *added("moves", "reserver-edit")]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert set(_RIGHTS.values()) <= granted


USERS_RIGHTS = {
    # The rights in docs/grpc.md and docs/reservations.md, and no more.
    "reserver-edit": {
        "reservations": {*READ, "create", "update", "patch", "delete", "deletecollection"},
        "reservations/capacity": {"get", "list"},
    },
    "reserver-view": {
        "reservations": READ,
        "reservations/status": READ,
        "reservationquotas": READ,
        "reservationquotas/status": READ,
        "reservations/capacity": {"get", "list"},
    },
    "reserver-scheduler-plugin": {"reservations/scheduler": {"get", "create", "delete"}},
    "reserver-cli": {"pods": {"get", "list"}, "pods/portforward": {"get", "create"}},
}


def test_users_roles_grant_what_the_docs_say_and_no_more() -> None:
    granted: dict[str, dict[str, set[str]]] = {}
    for role in documents("core/rbac-users.yaml"):
        rights = granted.setdefault(role["metadata"]["name"], {})
        for rule in role["rules"]:
            for resource in rule["resources"]:
                rights.setdefault(resource, set()).update(rule["verbs"])
    assert granted == USERS_RIGHTS


def test_by_default_only_who_may_view_is_given_rights_and_only_to_read() -> None:
    for role in documents("core/rbac-users.yaml"):
        added_to = set(role["metadata"].get("labels", ()))
        if role["metadata"]["name"] == "reserver-view":
            assert added_to == {"rbac.authorization.k8s.io/aggregate-to-view"}
            assert {verb for rule in role["rules"] for verb in rule["verbs"]} == READ
        else:
            assert not added_to


def test_no_role_grants_everything_or_secrets() -> None:
    files = ("core/rbac-reserver.yaml", "core/rbac-users.yaml", "base/rbac-scheduler.yaml")
    rules = [rule for each in documents(*files) for rule in each.get("rules", ())]
    said = {word for rule in rules for words in rule.values() for word in words}
    assert rules
    assert not {"*", "secrets", "escalate", "bind", "impersonate"} & said
