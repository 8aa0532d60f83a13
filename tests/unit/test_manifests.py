"""The manifests: Reserver takes the flags, and ports, probes and rights are of one mind."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from reserver.cli.flag_groups import taken
from reserver.cli.main import app
from reserver.grpc.access import _RIGHTS
from reserver.k8s.serving_pod import LABEL, SERVING, STATIC_NAMESPACE
from reserver.rebalance.dump import COLLECTIONS
from reserver.rebalance.policy_reader import read as read_policy
from reserver.rebalance.settings import RebalanceSettings
from reserver.settings.flags import parse_address
from reserver.settings.serve import WEBHOOK_SERVICE
from reserver.webhook.certificate_secret import CONFIGURATIONS, SECRET
from reserver.webhook.handlers import PATCH_PATH, PATIENCE_S, RESIZE_PATH

RBAC = "rebalance/core/rbac.yaml"
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
    serve = command.get_command(None, *subcommand).loaded()
    context = serve.make_context("serve", list(container["args"]))
    return dict(context.params)


@pytest.mark.parametrize(("name", "is_local"), [("base", True), ("standby", False)])
def test_the_grpc_api_is_served_on_a_port_of_that_name(name: str, *, is_local: bool) -> None:
    container = reserver_of(name)
    address, port = parse_address("--grpc-address", flags(container)["grpc_address"])
    assert (address == "127.0.0.1") == is_local
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports["grpc"] == port
    if not is_local:
        assert flags(container)["tls_cert_file"]


def test_a_service_leads_to_ports_that_there_are() -> None:
    (service,) = documents("standby/service.yaml")
    (deployment,) = documents("standby/deployment.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    # The leader writes the last one itself.
    assert service["spec"]["selector"].items() <= (labels | {SERVING: "true"}).items()
    (name,) = reserver_of("standby")["env"]
    assert (name["name"], SERVING in labels) == ("RESERVER_POD_NAME", False)
    there = {each["name"] for each in reserver_of("standby")["ports"]}
    assert {each["targetPort"] for each in service["spec"]["ports"]} <= there
    assert "grpc" in {each["name"] for each in service["spec"]["ports"]}


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
    # What docs/grpc.md and docs/reservations.md say of them, and no more.
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


@pytest.mark.parametrize(
    ("name", "open_to_all"),
    [("base", set()), ("standby", {"extender"}), ("rebalance/deployment", set())],
)
def test_each_port_that_is_reached_from_elsewhere_says_from_where(
    name: str, open_to_all: set[str]
) -> None:
    """But for the extender's: kube-scheduler is on the host's network, which has no labels."""
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


REBALANCE = {
    # kind of manifest: where its pods' template is.
    "job": ("spec", "template"),
    "cronjob": ("spec", "jobTemplate", "spec", "template"),
    "deployment": ("spec", "template"),
}


@pytest.mark.parametrize("name", ["base", "standby", *REBALANCE])
def test_no_service_of_the_namespace_becomes_a_setting(name: str) -> None:
    if name in REBALANCE:
        pod = rebalancing_pod(name)["spec"]
    else:
        (deployment,) = documents(f"{name}/deployment.yaml")
        pod = deployment["spec"]["template"]["spec"]
    assert pod["enableServiceLinks"] is False


def test_a_start_waits_for_no_api_server() -> None:
    """Else the kubelet would end Reserver while the API server is away, and begin anew."""
    (static,) = yaml.safe_load((MANIFESTS / "static-pod/patch.yaml").read_text())[0]["value"]
    for container in (reserver_of("base"), reserver_of("standby"), static):
        assert "/healthz" in str(container["startupProbe"])
        assert "/healthz" in str(container["livenessProbe"])


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


def rebalancing_pod(name: str) -> dict[str, Any]:
    """Return the template of the pods that run `reserver rebalance run`."""
    (found,) = documents(f"rebalance/{name}/{name}.yaml")
    for step in REBALANCE[name]:
        found = found[step]
    return found


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
    """Beside what tests/e2e/apart/test_rebalance.py runs with."""
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
    # One that stands by is not ready, and has metrics.
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


def test_the_command_line_and_a_scraper_find_the_static_pod() -> None:
    patch: list[dict[str, Any]] = yaml.safe_load((MANIFESTS / "static-pod/patch.yaml").read_text())
    found = {each["path"]: each["value"] for each in patch}
    label = {"app.kubernetes.io/name": found["/metadata/labels/app.kubernetes.io~1name"]}
    assert "=".join(*label.items()) == LABEL
    (monitor,) = documents("static-pod/pod-monitor.yaml")
    assert monitor["spec"]["selector"]["matchLabels"] == label
    assert monitor["spec"]["namespaceSelector"]["matchNames"] == [STATIC_NAMESPACE]
    (container,) = found["/spec/initContainers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    for name in ("health", "grpc"):
        _, port = parse_address(name, flags(container)[f"{name}_address"])
        assert ports[name] == port
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in ports


def stub(folder: Path, server: str) -> str:
    """Make a kubectl of another version than the cluster's; return what PATH is with it."""
    folder.mkdir()
    told = f"clientVersion:\n  gitVersion: v1.99.0\nserverVersion:\n  gitVersion: {server}\n"
    (folder / "kubectl").write_text(f"#!/bin/sh\ncat <<'E'\n{told}E\n")
    (folder / "kubectl").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize("server", ["v1.36.2", "v1.36.2-gke.1000", "v1.36.2+k3s1"])
def test_the_second_kube_scheduler_follows_the_clusters_version(
    tmp_path: Path, server: str
) -> None:
    page = (MANIFESTS.parent / "docs/install.md").read_text()
    (line,) = re.findall(r"^\$ (kubectl version .*)$", page, re.MULTILINE)
    (written,) = re.findall(
        r"^```yaml\n# kustomization.yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL
    )
    (tmp_path / "kustomization.yaml").write_text(written)
    env = {"PATH": stub(tmp_path / "bin", server)}
    subprocess.run(["bash", "-c", line], cwd=tmp_path, env=env, check=True)
    images = yaml.safe_load((tmp_path / "kustomization.yaml").read_text())["images"]
    (deployment,) = documents("base/deployment.yaml")
    (scheduler,) = deployment["spec"]["template"]["spec"]["containers"]
    name, _, _ = scheduler["image"].partition(":")
    assert images[-1] == {"name": name, "newTag": "v1.36.2"}


def test_the_static_pod_gives_flags_that_reserver_takes_and_closes_its_ports() -> None:
    patch: list[dict[str, Any]] = yaml.safe_load((MANIFESTS / "static-pod/patch.yaml").read_text())
    (container,) = next(each["value"] for each in patch if each["path"] == "/spec/initContainers")
    given = flags(container)
    # On the host's network every process reaches what listens on loopback.
    assert given["bind_address"] == "127.0.0.1"
    assert given["extender_client_ca_file"]
    assert given["grpc_loopback_tls"]
    assert given["grpc_loopback_tokens"]
    (config,) = documents("static-pod/kube-scheduler.yaml")
    (base,) = documents("base/kube-scheduler.yaml")
    (shipped,) = base["extenders"]
    url, tls = f"https://127.0.0.1:{given['http_port']}", config["extenders"][0]["tlsConfig"]
    assert config["extenders"] == by_connection(
        {**shipped, "urlPrefix": url, "enableHTTPS": True, "tlsConfig": tls}
    )
    mounted = container["volumeMounts"][0]["mountPath"]
    files = [*tls.values(), *(str(given[each]) for each in FILES)]
    assert all(str(each).startswith(f"{mounted}/") for each in files)


def test_the_extender_of_the_deployment_is_that_of_the_sidecar_but_for_tls() -> None:
    (config,), (base,) = (
        documents(f"{each}.yaml")
        for each in ("standby/kube-scheduler-extender", "base/kube-scheduler")
    )
    (shipped,) = base["extenders"]
    own = config["extenders"][0]
    tls = {key: own[key] for key in ("urlPrefix", "enableHTTPS", "tlsConfig")}
    assert config["extenders"] == by_connection({**shipped, **tls})


def by_connection(extender: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an entry for Filter and one for Bind, so that each has connections of its own."""
    of_filter = {"filterVerb", "preemptVerb"}
    return [
        {key: value for key, value in extender.items() if key not in others}
        for others in ({"bindVerb"}, of_filter)
    ]


FILES = ("kubeconfig", "tls_cert_file", "tls_private_key_file", "extender_client_ca_file")

WEBHOOKS = "components/webhooks"


def test_the_webhooks_lead_to_what_reserver_serves() -> None:
    (service,) = documents(f"{WEBHOOKS}/service.yaml")
    assert service["metadata"]["name"] == WEBHOOK_SERVICE
    hooks = {
        f"/apis/{each['apiVersion']}/{each['kind'].lower()}s/{each['metadata']['name']}": hook
        for each in documents(f"{WEBHOOKS}/configurations.yaml")
        for hook in each["webhooks"]
    }
    assert set(hooks) == set(CONFIGURATIONS)
    targets = [hook["clientConfig"]["service"] for hook in hooks.values()]
    assert [target["path"] for target in targets] == [PATCH_PATH, RESIZE_PATH]
    assert {target["name"] for target in targets} == {WEBHOOK_SERVICE}
    for hook in hooks.values():
        # No namespace waits for Reserver, and no pod longer than for its slot.
        assert (hook["failurePolicy"], hook["sideEffects"]) == ("Ignore", "NoneOnDryRun")
        assert hook["timeoutSeconds"] >= 2 * PATIENCE_S
        spared, _ = hook["namespaceSelector"]["matchExpressions"]
        assert set(spared["values"]) == {"kube-system", "reserver-system"}


def test_the_webhooks_port_is_closed_until_addresses_are_named() -> None:
    """Nobody is asked for a certificate there; a rule without `from` would let everybody in."""
    (component,) = documents(f"{WEBHOOKS}/kustomization.yaml")
    assert not [each for each in component["patches"] if each["target"]["kind"] == "NetworkPolicy"]
    policies = [
        each
        for folder in ("base", "standby", WEBHOOKS)
        for path in (MANIFESTS / folder).glob("*.yaml")
        for each in documents(f"{folder}/{path.name}")
        if each.get("kind") == "NetworkPolicy"
    ]
    assert {each["metadata"]["name"] for each in policies} == {"reserver-scheduler", "reserver"}
    for policy in policies:
        assert "Ingress" in policy["spec"]["policyTypes"]
        ports = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
        assert "webhooks" not in ports


def test_the_webhooks_need_these_rights_and_no_others() -> None:
    granted = {
        (each["kind"], resource, name, verb)
        for each in documents(f"{WEBHOOKS}/rbac.yaml")
        for rule in each.get("rules", ())
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ("",))
        for verb in rule["verbs"]
    }
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    assert granted == {
        *(("ClusterRole", "schedpatches", "", verb) for verb in ("list", "watch", "delete")),
        ("ClusterRole", "schedpatches/status", "", "patch"),
        *(("ClusterRole", kind, "reserver", verb) for kind in kinds for verb in ("get", "patch")),
        ("Role", "secrets", "", "create"),
        *(("Role", "secrets", SECRET, verb) for verb in ("get", "update")),
    }
