"""Services, network policies and the scraping of metrics."""

import pytest
import yaml

from reserver.k8s.serving_pod import SERVING
from tests.unit.manifests.documents import documents, rebalancing_pod, reserver_of


def test_a_service_leads_to_ports_that_there_are() -> None:
    (service,) = documents("standby/service.yaml")
    (deployment,) = documents("standby/deployment.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    # The leader sets the last label itself.
    assert service["spec"]["selector"].items() <= (labels | {SERVING: "true"}).items()
    (name,) = reserver_of("standby")["env"]
    assert (name["name"], SERVING in labels) == ("RESERVER_POD_NAME", False)
    there = {each["name"] for each in reserver_of("standby")["ports"]}
    assert {each["targetPort"] for each in service["spec"]["ports"]} <= there
    assert "grpc" in {each["name"] for each in service["spec"]["ports"]}


@pytest.mark.parametrize(
    ("name", "open_to_all"),
    [("base", set()), ("standby", {"extender"}), ("rebalance/deployment", set())],
)
def test_each_port_that_is_reached_from_elsewhere_says_from_where(
    name: str, open_to_all: set[str]
) -> None:
    """Except the extender's port: kube-scheduler uses the host's network, which has no labels."""
    (policy,) = documents(f"{name}/network-policy.yaml")
    (deployment,) = documents(f"{name}/deployment.yaml")
    template = deployment["spec"]["template"]
    assert policy["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    selected = policy["spec"]["podSelector"]["matchLabels"]
    assert selected.items() <= template["metadata"]["labels"].items()
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    rules = {rule["ports"][0]["port"]: rule for rule in policy["spec"]["ingress"]}
    assert {port for port, rule in rules.items() if not rule.get("from")} == open_to_all
    containers = template["spec"]["containers"] + template["spec"].get("initContainers", [])
    there = {port["name"] for each in containers for port in each.get("ports", ())}
    on_loopback = {"grpc"} if name == "base" else set()
    assert rules.keys() == there - on_loopback
    (way_out,) = policy["spec"]["egress"]
    assert {each["port"] for each in way_out["ports"]} == {443, 6443}


def test_the_second_kube_schedulers_metrics_are_scraped_where_it_serves_them() -> None:
    service, monitor = documents("components/monitoring/kube-scheduler.yaml")
    (deployment,) = documents("base/deployment.yaml")
    template = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    (scheduler,) = template["spec"]["containers"]
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in {each["name"] for each in scheduler["ports"]}
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["scheme"]) == (port["name"], "https")


def test_metrics_are_served_where_their_service_leads_and_to_who_may_scrape() -> None:
    (kustomization,) = documents("components/monitoring/kustomization.yaml")
    service, of_rounds, monitor = documents("components/monitoring/monitor.yaml")
    (port,) = service["spec"]["ports"]
    (health,) = rebalancing_pod("deployment")["spec"]["containers"][0]["ports"]
    (round_port,) = of_rounds["spec"]["ports"]
    assert (round_port["port"], round_port["name"]) == (health["containerPort"], port["name"])
    assert round_port["targetPort"] == health["name"]
    labels = rebalancing_pod("deployment")["metadata"]["labels"]
    assert of_rounds["spec"]["selector"].items() <= labels.items()
    assert of_rounds["metadata"]["labels"] == service["metadata"]["labels"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    assert endpoint["port"] == port["name"]
    # A standby is not ready, and has metrics.
    assert service["spec"]["publishNotReadyAddresses"]
    added_to = {
        each["target"]["kind"]: [one["value"] for one in yaml.safe_load(each["patch"])]
        for each in kustomization["patches"]
    }
    flag, opened = added_to["Deployment"]
    (rule,) = added_to["NetworkPolicy"]
    assert flag == f"--health-address=0.0.0.0:{opened['containerPort']}"
    (health,) = (each for each in reserver_of("standby")["ports"] if each["name"] == "health")
    assert opened == health
    assert port["targetPort"] == health["name"]
    (policy,) = documents("standby/network-policy.yaml")
    assert rule in policy["spec"]["ingress"]
