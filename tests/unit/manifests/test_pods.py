"""Pods of the manifests: flags, rolls and security."""

import pytest
import yaml

from reserver.settings.flags import parse_address
from tests.unit.manifests.documents import (
    MANIFESTS,
    REBALANCE,
    documents,
    flags,
    rebalancing_pod,
    reserver_of,
)


@pytest.mark.parametrize(("name", "is_local"), [("base", True), ("standby", False)])
def test_the_grpc_api_is_served_on_a_port_of_that_name(name: str, *, is_local: bool) -> None:
    container = reserver_of(name)
    address, port = parse_address("--grpc-address", flags(container)["grpc_address"])
    assert (address == "127.0.0.1") == is_local
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports["grpc"] == port
    if not is_local:
        assert flags(container)["tls_cert_file"]


def test_no_roll_takes_a_pod_before_another_could_lead_and_none_waits_for_whom_it_serves() -> None:
    (deployment,) = documents("standby/deployment.yaml")
    (bootstrap,) = documents("standby/bootstrap.yaml")
    (config,) = documents("standby/bootstrap-scheduler.yaml")
    spec, pod = deployment["spec"], deployment["spec"]["template"]["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    probe = reserver_of("standby")["readinessProbe"]["httpGet"]
    assert probe["path"] == "/readyz/able"
    (profile,) = config["profiles"]
    assert pod["schedulerName"] == profile["schedulerName"]
    assert "extenders" not in config
    assert bootstrap["spec"]["template"]["spec"]["schedulerName"] == "default-scheduler"
    (term,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["matchLabelKeys"] == ["pod-template-hash"]


def test_a_second_kube_scheduler_goes_once_the_next_is_ready_and_never_two_bind() -> None:
    (deployment,) = documents("base/deployment.yaml")
    strategy = deployment["spec"]["strategy"]
    assert strategy["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    config = yaml.safe_load((MANIFESTS / "base/kube-scheduler.yaml").read_text())
    assert config["leaderElection"]["leaderElect"]


@pytest.mark.parametrize("name", ["base", "standby"])
def test_no_hold_keeps_reserver_from_a_node(name: str) -> None:
    (deployment,) = documents(f"{name}/deployment.yaml")
    spec = deployment["spec"]["template"]["spec"]
    assert spec["priorityClassName"] == "system-cluster-critical"
    exempt = flags(reserver_of(name))["exempt_namespaces"]
    assert deployment["metadata"]["namespace"] in exempt


@pytest.mark.parametrize("name", ["base", "standby"])
def test_no_container_may_more_than_it_needs(name: str) -> None:
    (deployment,) = documents(f"{name}/deployment.yaml")
    spec = deployment["spec"]["template"]["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in spec["containers"] + spec.get("initContainers", []):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}


@pytest.mark.parametrize("name", ["base", "standby", *REBALANCE])
def test_no_service_of_the_namespace_becomes_a_setting(name: str) -> None:
    if name in REBALANCE:
        pod = rebalancing_pod(name)["spec"]
    else:
        (deployment,) = documents(f"{name}/deployment.yaml")
        pod = deployment["spec"]["template"]["spec"]
    assert pod["enableServiceLinks"] is False


def test_a_start_waits_for_no_api_server() -> None:
    """Otherwise the kubelet would restart Reserver while the API server is away."""
    (static,) = yaml.safe_load((MANIFESTS / "static-pod/patch.yaml").read_text())[0]["value"]
    for container in (reserver_of("base"), reserver_of("standby"), static):
        assert "/healthz" in str(container["startupProbe"])
        assert "/healthz" in str(container["livenessProbe"])
