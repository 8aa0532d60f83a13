"""The manifests: Reserver takes the flags, and ports, probes and rights are of one mind."""

from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from reserver.cli.main import app
from reserver.config import parse_address
from reserver.server.rpc.access import _RIGHTS

MANIFESTS = Path(__file__).parents[2] / "scheduler-config"
READ = {"get", "list", "watch"}


def documents(*names: str) -> list[dict[str, Any]]:
    return [each for name in names for each in yaml.safe_load_all((MANIFESTS / name).read_text())]


def reserver_of(name: str) -> dict[str, Any]:
    """Return the container of reserver in a Deployment."""
    (deployment,) = documents(f"{name}/deployment.yaml")
    spec = deployment["spec"]["template"]["spec"]
    containers = spec["containers"] + spec.get("initContainers", [])
    (found,) = [each for each in containers if each["name"] == "reserver"]
    return dict(found)


def flags(container: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that reserver makes of its arguments."""
    command: Any = typer.main.get_command(app)
    program, *subcommand = container["command"]
    assert program == "reserver"
    serve = command.get_command(None, *subcommand)
    context = serve.make_context("serve", list(container["args"]))
    return dict(context.params)


@pytest.mark.parametrize(("name", "is_local"), [("base", True), ("standby", False)])
def test_the_grpc_api_is_served_on_a_port_of_that_name(name: str, *, is_local: bool) -> None:
    container = reserver_of(name)
    address, port = parse_address(flags(container)["grpc_address"])
    assert (address == "127.0.0.1") == is_local
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports["grpc"] == port
    if not is_local:
        assert flags(container)["tls_cert_file"]


def test_a_service_leads_to_ports_that_there_are() -> None:
    (service,) = documents("standby/service.yaml")
    (deployment,) = documents("standby/deployment.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    there = {each["name"] for each in reserver_of("standby")["ports"]}
    assert {each["targetPort"] for each in service["spec"]["ports"]} <= there
    assert "grpc" in {each["name"] for each in service["spec"]["ports"]}


def test_there_is_a_role_for_each_method() -> None:
    granted = {
        (verb, resource)
        for role in documents("core/rbac-users.yaml")
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert set(_RIGHTS.values()) <= granted


USERS_RIGHTS = {
    # What docs/grpc.md and docs/crd.md say of them, and no more.
    "reserver-edit": {
        "reservations": {*READ, "create", "update", "patch", "delete", "deletecollection"},
        "reservations/capacity": {"get", "list"},
    },
    "reserver-view": {
        "reservations": READ,
        "reservations/status": READ,
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
