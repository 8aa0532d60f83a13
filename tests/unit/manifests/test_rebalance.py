"""The manifests of `reserver rebalance run`: flags, rights and policy."""

from typing import Any

import pytest
import typer

from reserver.cli.flag_groups import taken
from reserver.cli.main import app
from reserver.rebalance.dump import COLLECTIONS
from reserver.rebalance.policy_reader import read as read_policy
from reserver.rebalance.settings import RebalanceSettings
from tests.unit.manifests.documents import MANIFESTS, REBALANCE, documents, rebalancing_pod

RBAC = "rebalance/core/rbac.yaml"


@pytest.mark.parametrize("name", REBALANCE)
def test_the_manifests_of_rebalancing_give_flags_that_reserver_takes(name: str) -> None:
    (container,) = rebalancing_pod(name)["spec"]["containers"]
    command: Any = typer.main.get_command(app)
    assert container["command"] == ["reserver", "rebalance", "run"]
    run = command.get_command(None, "rebalance").loaded().get_command(None, "run")
    given = run.make_context("run", list(container["args"])).params
    settings = taken(RebalanceSettings, given)
    assert bool(settings.descheduling_interval) == (name == "deployment")
    (mount,) = container["volumeMounts"]
    assert str(settings.policy_config_file) == f"{mount['mountPath']}/policy.yaml"
    if settings.leader_elect:
        (role,) = (each for each in documents(f"{RBAC}") if each["kind"] == "Role")
        (named,) = (rule for rule in role["rules"] if "resourceNames" in rule)
        assert named["resourceNames"] == [settings.leader_elect_resource_name]
        assert role["metadata"]["namespace"] == settings.leader_elect_resource_namespace


@pytest.mark.parametrize("name", REBALANCE)
def test_a_pod_that_rebalances_may_no_more_than_it_needs(name: str) -> None:
    pod = rebalancing_pod(name)
    assert pod["spec"]["serviceAccountName"] == "reserver-rebalance"
    assert pod["spec"]["securityContext"]["runAsNonRoot"]
    (container,) = pod["spec"]["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    # The command line looks for Reserver's own pods by this label.
    assert pod["metadata"]["labels"]["app.kubernetes.io/name"] != "reserver"


def test_who_rebalances_may_what_a_round_asks_for_and_no_more() -> None:
    """The rights in tests/e2e/apart/test_rebalance.py; a round fails there without one of them."""
    (role,) = (each for each in documents(RBAC) if each["kind"] == "ClusterRole")
    granted = {
        (verb, group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    listed = [path.strip("/").split("/") for path in COLLECTIONS]
    assert granted == {
        *(("list", "" if path[0] == "api" else path[1], path[-1]) for path in listed),
        ("create", "", "pods/eviction"),
        ("create", "events.k8s.io", "events"),
        ("list", "metrics.k8s.io", "nodes"),
        ("list", "metrics.k8s.io", "pods"),
        ("list", "slo.koordinator.sh", "nodemetrics"),
        ("list", "reserver.io", "reservations/capacity"),
        ("list", "reserver.io", "podmoves"),
        ("create", "reserver.io", "podmoves"),
        ("create", "reserver.io", "podmovegroups"),
    }


def test_who_empties_nodes_may_read_and_patch_them_and_is_who_rebalances() -> None:
    """In addition to the rights in tests/e2e/apart/test_rebalance.py."""
    role, binding = documents("components/emptying/rbac.yaml")
    (rule,) = role["rules"]
    assert (rule["resources"], rule["verbs"]) == (["nodes"], ["get", "patch"])
    (subject,) = binding["subjects"]
    assert subject in next(
        each["subjects"] for each in documents(RBAC) if each["kind"] == "ClusterRoleBinding"
    )


def test_the_policy_that_we_ship_is_one() -> None:
    raw = (MANIFESTS / "rebalance/core/policy.yaml").read_bytes()
    found = read_policy(raw, lambda _: None)
    assert (found.problems, found.warnings) == ((), ())
    assert found.policy is not None
