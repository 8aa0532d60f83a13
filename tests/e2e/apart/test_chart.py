"""The chart renders what kustomize does, and refuses values that cannot be."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.chart import CHART, SCHEMA, leaves
from hack.controlplane.build import bin_dir
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import kubectl
from hack.go_tool import HELM
from reserver.cli import serve_settings
from reserver.settings.configuration_file import configured
from tests.e2e.apart.chart_values import ARRIVALS, Arrival
from tests.pages import section

pytestmark = pytest.mark.controlplane  # for its kubectl

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "scheduler-config"
HOME = "reserver-system"
Key = tuple[str, str, str]

_OF_ROUNDS = "emptying"
"""The component of rebalancing, which the chart has with `rebalance.settings.defragment`."""

COMPONENTS = tuple(
    sorted(each.name for each in (MANIFESTS / "components").iterdir() if each.name != _OF_ROUNDS)
)
BASES = {"base": "sidecar", "standby": "standby"}
_OF_BASE = "grpc"
"""The component that `standby` has in it."""

TEMPLATE = (
    "template",
    "reserver",
    str(CHART),
    "--namespace=reserver-system",
    "--kube-version=v1.37.0",
)
VALUES = {"capacity-buffers": "capacityBuffers"}
"""The values of components that have another name there."""

NEEDED = {"capacity-buffers": ("autoscalers",), "maintenance": ("moves",), "surge": ("moves",)}
"""The other components that a component needs."""

KEEP = {"helm.sh/resource-policy": "keep"}


@pytest.fixture(scope="session")
def helm() -> Path:
    """Helm, built if it is not there."""
    return HELM.build()


def render(helm: Path, *flags: str) -> dict[Key, Any]:
    """Return what the chart renders, as the cluster's own version would have it."""
    return by_key(_run(helm, *TEMPLATE, *flags))


def render_like_kustomize(helm: Path, *flags: str) -> dict[Key, Any]:
    """Return the same, with the tag that the manifests name, and without what only Helm runs."""
    found = render(helm, "--set=image.tag=dev", *flags)
    return {key: each for key, each in found.items() if key != ("Pod", HOME, "reserver-test")}


def kustomize(folder: Path) -> dict[Key, Any]:
    return by_key(_run(bin_dir() / "kubectl", "kustomize", folder))


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_key(text: str) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    for each in filter(None, yaml.load_all(text, yaml.CSafeLoader)):
        metadata = each["metadata"]
        name = metadata["name"]
        if name.startswith("kube-scheduler-configuration-"):
            name = "kube-scheduler-configuration"
        key = (each["kind"], metadata.get("namespace", ""), name)
        assert key not in found, f"{key} is rendered twice"
        found[key] = each
    return found


def without_differences(rendered: dict[Key, Any]) -> dict[Key, Any]:
    """Return the objects without that in which kustomize and Helm differ on purpose.

    - The namespace: Helm's is the release's, which `--create-namespace` makes; an object of the
      chart with that name would be in its way.
    - CRDs and the store stay when a release is uninstalled.
    - The hash in the name of kube-scheduler's configuration is that of another function.
    - A list of things with names has no order for Kubernetes, and comments are no content.
    """
    found = {}
    for key, each in rendered.items():
        if key[0] == "Namespace":
            continue
        metadata = each["metadata"]
        is_kept = key[0] == "CustomResourceDefinition" or key[::2] == ("ConfigMap", "reservations")
        if is_kept and metadata.get("annotations") == KEEP:
            del metadata["annotations"]
        if key[2] == "kube-scheduler-configuration":
            metadata["name"] = key[2]
        if key[0] == "ConfigMap":
            each["data"] = {
                name: yaml.safe_load(text) for name, text in each.get("data", {}).items()
            }
        found[key] = _by_name(each)
    return found


def _by_name(value: Any) -> Any:
    if isinstance(value, dict):
        if (
            (value.get("configMap") or {})
            .get("name", "")
            .startswith("kube-scheduler-configuration-")
        ):
            value = {**value, "configMap": {"name": "kube-scheduler-configuration"}}
        return {key: _by_name(each) for key, each in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(each, dict) and "name" in each for each in value):
            return {each["name"]: _by_name(each) for each in value}
        return [_by_name(each) for each in value]
    return value


CALLERS = "192.0.2.0/28"
"""The addresses of API servers, which may call webhooks (docs/patches.md)."""

LET_IN = {
    "target": {"kind": "NetworkPolicy", "name": "reserver.*"},
    "patch": yaml.safe_dump(
        [
            {
                "op": "add",
                "path": "/spec/ingress/-",
                "value": {
                    "ports": [{"port": "webhooks"}],
                    "from": [{"ipBlock": {"cidr": CALLERS}}],
                },
            }
        ]
    ),
}


def enabled(components: tuple[str, ...]) -> list[str]:
    found = [f"--set={VALUES.get(each, each)}.enabled=true" for each in components]
    if "webhooks" in components:
        found.append(f"--set=networkPolicy.webhooksFrom={{{CALLERS}}}")
    return found


def overlay(folder: Path, base: str, components: tuple[str, ...]) -> Path:
    """Write a user's kustomization.yaml, as the docs have it."""
    folder.mkdir()
    (folder / "config").symlink_to(MANIFESTS)
    wanted = {
        "resources": [f"config/{base}"],
        "components": [f"config/components/{each}" for each in components],
        "patches": [LET_IN] if "webhooks" in components else [],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(wanted))
    return folder


def components_of(base: str) -> tuple[str, ...]:
    return tuple(each for each in COMPONENTS if base == "base" or each != _OF_BASE)


VARIANTS = [
    (base, components)
    for base in BASES
    for components in [
        (),
        *(tuple(sorted((*NEEDED.get(each, ()), each))) for each in components_of(base)),
        components_of(base),
    ]
]


def assert_same(found: dict[Key, Any], wanted: dict[Key, Any]) -> None:
    found, wanted = without_differences(found), without_differences(wanted)
    assert found.keys() == wanted.keys()
    for key, each in wanted.items():
        assert found[key] == each, key


@pytest.mark.parametrize(("base", "components"), VARIANTS)
def test_the_chart_renders_what_kustomize_does(
    helm: Path, tmp_path: Path, base: str, components: tuple[str, ...]
) -> None:
    wanted = kustomize(overlay(tmp_path / "user", base, components))
    assert_same(
        render_like_kustomize(helm, f"--set=mode={BASES[base]}", *enabled(components)), wanted
    )


@pytest.mark.parametrize("way", ["deployment", "cronjob"])
def test_what_rebalances_by_itself_is_rendered_as_kustomize_does(helm: Path, way: str) -> None:
    wanted = kustomize(MANIFESTS / "base") | kustomize(MANIFESTS / "rebalance" / way)
    flags = ("--set=rebalance.enabled=true", f"--set=rebalance.run={way}")
    assert_same(render_like_kustomize(helm, *flags), wanted)


def test_rounds_that_empty_nodes_have_the_rights_of_their_component(
    helm: Path, tmp_path: Path
) -> None:
    whole = kustomize(overlay(tmp_path / "user", "rebalance/deployment", (_OF_ROUNDS,)))
    without = kustomize(MANIFESTS / "rebalance/deployment")
    flags = "--set=rebalance.enabled=true,rebalance.settings.defragment=true"
    found = render_like_kustomize(helm, flags)
    added = whole.keys() - without.keys()
    assert added
    assert all(found[key] == whole[key] for key in added)
    pod = found["Deployment", HOME, "reserver-rebalance"]["spec"]["template"]["spec"]
    assert "--defragment" in pod["containers"][0]["args"]


def test_rounds_beside_standby_are_rendered_as_kustomize_does_with_its_ca(helm: Path) -> None:
    wanted = kustomize(MANIFESTS / "standby") | kustomize(MANIFESTS / "rebalance/standby")
    settings = "rebalance.settings.make-room=true,rebalance.settings.mode=reserve-first"
    settings += ",rebalance.settings.dry-run=false"  # Its flag has no form with --no-.
    flags = ("--set=mode=standby,rebalance.enabled=true",)
    assert_same(render_like_kustomize(helm, *flags), wanted)
    found = render(helm, *flags, f"--set=moves.enabled=true,{settings}")
    pod = found["Deployment", "reserver-system", "reserver-rebalance"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"][-2:] == ["--make-room", "--mode=reserve-first"]


def test_the_static_pods_files_are_rendered_as_kustomize_does(helm: Path) -> None:
    found = render_like_kustomize(helm, "--set=mode=static-pod")
    assert_same(found, kustomize(MANIFESTS / "static-pod"))


def test_no_object_names_a_namespace_that_the_release_is_not_in(helm: Path) -> None:
    for base, mode in BASES.items():
        flags = ("--namespace=elsewhere", *enabled(components_of(base)), f"--set=mode={mode}")
        assert "reserver-system" not in _run(helm, *TEMPLATE, *flags)


@pytest.mark.parametrize("base", BASES)
def test_manifests_with_another_namespace_are_what_the_chart_renders_there(
    helm: Path, tmp_path: Path, base: str
) -> None:
    (tmp_path / "scheduler-config").symlink_to(MANIFESTS)
    for line in section("docs/install.md", "Another namespace"):
        subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True)
    found = render_like_kustomize(helm, "--namespace=held", f"--set=mode={BASES[base]}")
    del found["Pod", "held", "reserver-test"]
    assert_same(found, kustomize(tmp_path / "held" / base))


def test_a_table_says_of_each_value_where_it_arrives() -> None:
    assert {*ARRIVALS} == {path for path, _ in leaves(json.loads(SCHEMA.read_text()))}


@pytest.mark.parametrize("path", ARRIVALS)
def test_a_value_arrives_where_it_is_for(helm: Path, tmp_path: Path, path: str) -> None:
    arrival = ARRIVALS[path]
    (tmp_path / "beside.yaml").write_text(arrival.beside)
    given: Any = yaml.safe_load(arrival.value)
    for name in reversed(path.split(".")):
        given = {name: given}
    (tmp_path / "given.yaml").write_text(yaml.safe_dump(given))
    files = [f"--values={tmp_path / name}.yaml" for name in ("beside", "given")]
    tag = () if path == "image.tag" else ("--set=image.tag=dev",)
    found = render(helm, *files, *tag)
    before = render(helm, files[0], "--set=image.tag=dev")
    assert arrived(found, arrival)
    assert not arrived(before, arrival), "the value changes nothing"


def arrived(found: dict[Key, Any], arrival: Arrival) -> bool:
    """Whether what is rendered has the value."""
    what, _, path = arrival.found.partition(" ")
    (each,) = [one for key, one in found.items() if f"{key[0]}/{key[2]}" == what] or [None]
    while path and each is not None:
        each = yaml.safe_load(each) if isinstance(each, str) else each
        step = next(
            step for step in steps(path) if step.isdigit() or step in each or "." not in step
        )
        each = each[int(step)] if step.isdigit() else each.get(step)
        path = path[len(step) + 1 :]
    if isinstance(each, list):
        return all(one in each for one in arrival.expected)
    if isinstance(each, str) and isinstance(arrival.expected, str):
        return arrival.expected in each
    return bool((yaml.safe_load(each) if isinstance(each, str) else each) == arrival.expected)


def steps(path: str) -> list[str]:
    """Return what may be the first step of a path, the longest first: names may have dots."""
    parts = path.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def test_the_extenders_of_others_come_after_reservers(helm: Path, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(
        "kubeScheduler: {config: {extenders: [{urlPrefix: 'http://x', filterVerb: f}]}}"
    )
    found = render(helm, f"--values={tmp_path / 'values.yaml'}")
    data = found["ConfigMap", HOME, "kube-scheduler-configuration"]["data"]
    config = yaml.safe_load(data["kube-scheduler.yaml"])
    assert [each["urlPrefix"] for each in config["extenders"]] == [
        "http://127.0.0.1:9440",
        "http://x",
    ]
    assert config["profiles"] == [{"schedulerName": "reserver-scheduler"}]


def test_a_store_in_another_namespace_needs_the_role_there(helm: Path) -> None:
    found = render(helm, "--set=settings.configmap={unicore/reservation}")
    assert ("Role", "unicore", "reserver") in found
    assert ("RoleBinding", "unicore", "reserver") in found


@pytest.mark.parametrize("mode", ["sidecar", "standby"])
def test_reserver_takes_the_configuration_beside_the_charts_own_flags(
    helm: Path, tmp_path: Path, mode: str
) -> None:
    given = "exemptNamespaces={storage},configuration.storeConfigMaps={unicore/reservation}"
    flags = f"--set=mode={mode},moves.enabled=true,configuration.{given}"
    found = render(helm, flags)
    name = {"sidecar": "reserver-scheduler", "standby": "reserver"}[mode]
    pod = found["Deployment", HOME, name]["spec"]["template"]["spec"]
    (container,) = (
        each
        for each in [*pod.get("initContainers", ()), *pod["containers"]]
        if each["name"] == "reserver"
    )
    volumes = {each["name"]: each for each in pod["volumes"]}
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "configuration")
    source = volumes["configuration"]["configMap"]["name"]
    (file, text), *_ = found["ConfigMap", HOME, source]["data"].items()
    (tmp_path / file).write_text(text)
    args = [each.replace(mount["mountPath"], str(tmp_path)) for each in container["args"]]
    given_by_flags = serve_settings.read_plainly(args, {})
    assert given_by_flags is not None
    settings = configured(given_by_flags)
    assert set(settings.exempt_namespaces) == {"storage", HOME}
    assert settings.pod_moves
    assert ("Role", "unicore", "reserver") in found


def test_another_service_account_has_all_rights_and_the_pods(helm: Path) -> None:
    bases = {mode: base for base, mode in BASES.items()}
    for mode in ("sidecar", "standby", "static-pod"):
        components = components_of(bases[mode]) if mode in bases else ()
        flags = (f"--set=mode={mode},serviceAccount.name=mine", *enabled(components))
        found = render(helm, *flags, "--set=rebalance.enabled=true")
        accounts = {
            subject["name"]
            for each in found.values()
            for subject in each.get("subjects", ())
            if subject["kind"] == "ServiceAccount"
        }
        assert accounts - {"reserver-bootstrap"} == {"mine", "reserver-rebalance"}
        used = {
            each["spec"]["template"]["spec"]["serviceAccountName"]
            for key, each in found.items()
            if key[0] == "Deployment"
        }
        assert used <= accounts
        if mode == "static-pod":
            token = found["Secret", HOME, "reserver-token"]["metadata"]["annotations"]
            assert token == {"kubernetes.io/service-account.name": "mine"}


def test_with_cert_manager_the_webhooks_need_no_right_to_secrets(helm: Path) -> None:
    flags = ("--set=tls.certManager.enabled=true", *enabled(("webhooks",)))
    found = render(helm, *flags)
    assert ("Role", HOME, "reserver-webhooks") not in found
    (rules,) = (found["ClusterRole", "", "reserver-webhooks"]["rules"],)
    assert {group for rule in rules for group in rule["apiGroups"]} == {"reserver.io"}
    pod = found["Deployment", HOME, "reserver-scheduler"]["spec"]["template"]["spec"]
    reserver = pod["initContainers"][0]
    (mount,) = reserver["volumeMounts"]
    flags_of_files = [each.partition("=")[2] for each in reserver["args"] if "-file=" in each]
    assert flags_of_files == [f"{mount['mountPath']}/tls.{each}" for each in ("crt", "key")]
    (volume,) = (each for each in pod["volumes"] if each["name"] == mount["name"])
    certificate = found["Certificate", HOME, "reserver-webhook"]["spec"]
    assert volume["secret"]["secretName"] == certificate["secretName"]
    service = found["Service", HOME, "reserver-webhook"]["metadata"]["name"]
    assert certificate["dnsNames"] == [f"{service}.{HOME}.svc"]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = found[kind, "", "reserver"]["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": f"{HOME}/reserver-webhook"}


def test_the_pod_of_helm_test_is_bound_by_way_of_reserver(helm: Path) -> None:
    for mode, scheduler in (("sidecar", "reserver-scheduler"), ("standby", "default-scheduler")):
        pod = render(helm, f"--set=mode={mode}")["Pod", HOME, "reserver-test"]
        assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
        assert pod["spec"]["schedulerName"] == scheduler
        assert not pod["spec"]["automountServiceAccountToken"]


def test_the_static_pods_patch_has_what_is_given_to_its_container(
    helm: Path, tmp_path: Path
) -> None:
    (tmp_path / "values.yaml").write_text(
        "extraVolumeMounts: [{name: x, mountPath: /x}]\n"
        "extraVolumes: [{name: x, emptyDir: {}}]\n"
        "extraEnv: [{name: A, value: b}]\n"
        "extraArgs: [--crd]\n"
        "probes: {liveness: {periodSeconds: 9}}\n"
    )
    found = render(helm, "--set=mode=static-pod", f"--values={tmp_path / 'values.yaml'}")
    patch = yaml.safe_load(found["ConfigMap", HOME, "reserver-static-pod"]["data"]["patch.yaml"])
    container = patch[0]["value"][0]
    assert container["args"][-1] == "--crd"
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert container["volumeMounts"][-1] == {"name": "x", "mountPath": "/x"}
    assert container["livenessProbe"]["periodSeconds"] == 9
    assert patch[-1]["value"] == {"name": "x", "emptyDir": {}}


def test_static_pods_are_scraped_at_their_nodes_addresses(helm: Path) -> None:
    found = render(helm, "--set=mode=static-pod,monitoring.enabled=true,monitoring.interval=7s")
    monitor = found["PodMonitor", HOME, "reserver"]["spec"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["interval"]) == ("health", "7s")
    patch = yaml.safe_load(found["ConfigMap", HOME, "reserver-static-pod"]["data"]["patch.yaml"])
    container, (_, label) = patch[0]["value"][0], monitor["selector"]["matchLabels"].popitem()
    assert "--health-address=0.0.0.0:9441" in container["args"]
    assert {"name": endpoint["port"], "containerPort": 9441} in container["ports"]
    assert patch[1]["value"] == label


@pytest.mark.parametrize("mode", ["sidecar", "standby", "static-pod"])
def test_the_notes_name_what_is_there(helm: Path, mode: str) -> None:
    flags = ("--dry-run=client", "--namespace=reserver-system", f"--set=mode={mode}")
    told = _run(helm, "install", "mine", CHART, *flags)
    _, _, notes = told.partition("NOTES:")
    expected = {
        "sidecar": ("deployment/reserver-scheduler", "schedulerName: reserver-scheduler"),
        "standby": ("deployment/reserver\n", "kube-scheduler-extender.yaml"),
        "static-pod": ("reserver-static-pod", "docs/install.md"),
    }
    assert all(each in notes for each in expected[mode]), notes


REFUSED = {
    "mode=beside": "'/mode': value must be one of 'sidecar', 'standby', 'static-pod'",
    "imag.tag=x": "additional properties 'imag' not allowed",
    "replicas=0": "'/replicas': minimum: got 0, want 1",
    "settings.default-quot=none": "'/settings': additional properties 'default-quot' not allowed",
    "settings.namespace=x": "'/settings': additional properties 'namespace' not allowed",
    "settings.crd=maybe": "'/settings/crd': got string, want boolean",
    "settings.configmap={x}": 'settings.configmap: "x" names no ConfigMap; write NAMESPACE/NAME',
    "capacityBuffers.enabled=true": "set autoscalers.enabled: true, too",
    "maintenance.enabled=true": "set moves.enabled: true, too",
    "surge.enabled=true": "set moves.enabled: true, too",
    "settings.rebalance-mode=reserve-first": "write rebalance.settings.mode",
    "rebalance.run=within": "rebalance any more; write deployment or cronjob",
    "rebalance.settings.mode=reserve-first": "set moves.enabled: true, too",
    "rebalance.settings.make-room=true": "mode: reserve-first or surge-first, too",
    "moves.enabled=true,rebalance.settings.mode=surge-first": "set surge.enabled: true, too",
    "rebalance.settings.leader-elect=true": "additional properties 'leader-elect' not allowed",
    "image.digest=abc": 'image.digest: "abc" is no digest; write sha256:',
    "rebalance.interval=5": 'rebalance.interval: "5" is no duration; write e.g. 5m',
    "rebalance.schedule=hourly": 'rebalance.schedule: "hourly" is no schedule of cron',
    "networkPolicy.extenderFrom={192.0.2.7}": '"192.0.2.7" is no CIDR; write e.g. 192.0.2.7/32',
    "mode=standby,strategy.type=Recreate": "write type: RollingUpdate and rollingUpdate.maxUnava",
    "mode=standby,strategy.rollingUpdate.maxUnavailable=50%": "strategy: an image that does not",
    "strategy.type=Fast": "'/strategy/type': value must be one of 'RollingUpdate', 'Recreate'",
    "strategy.type=RollingUpdate,webhooks.enabled=true": "leave it out, or write type: Recreate",
    "webhooks.enabled=true,replicas=2": "leave out replicas, or set mode",
    "mode=static-pod,webhooks.enabled=true": "webhooks.enabled: no Service leads to a static pod",
    "webhooks.enabled=true": "networkPolicy.webhooksFrom: is empty, so no API server could call",
    "mode=standby,webhooks.enabled=true": "networkPolicy.webhooksFrom: is empty",
    "kubeScheduler.digest=abc": 'kubeScheduler.digest: "abc" is no digest',
    "mode=standby,kubeScheduler.extraArgs={--v=4}": "no second kube-scheduler in mode standby",
    "kubeScheduler.config.leaderElection.leaderElect=false": "the Lease is the chart's own",
    "kubeScheduler.config.profiles[0].schedulerName=x": "none is called reserver-scheduler",
    "kubeScheduler.config.extenders[0].bindVerb=b": "only Reserver may bind; leave out bindVerb",
    "kubeScheduler.extraArgs={v}": "'/kubeScheduler/extraArgs/0': 'v' does not match pattern",
    "tls.certManager.enabled=true": "a sidecar is called over loopback, without TLS",
    "mode=static-pod,tls.certManager.enabled=true": "reads its certificates from its node",
    "settings.tracing=true": "no trace would leave the pod; write e.g. [4317]",
    "serviceAnnotations.a=b": "only mode: standby and grpc.enabled have a Service that is called",
    "mode=standby,grpc.enabled=true": "the Service of mode: standby has gRPC, too; leave it out",
    "mode=static-pod,grpc.enabled=true": "grpc.enabled: no Service leads to a static pod",
    "mode=static-pod,nodeSelector.a=b": "nodeSelector: the pod is that of the cluster's own",
    "mode=static-pod,configuration.historyTTL=1h": "configuration: the pod is that of the",
    "configuration.featureGates.PodMoves=true": "needs rights, too; write moves.enabled",
    "configuration.featureGates.Tracing=true": "no trace would leave the pod; write e.g. [4317]",
    "configuration.login=x": "'/configuration': additional properties 'login' not allowed",
    "settings.log-level=debug,configuration.logging.level=info": "configuration.logging.level",
    "settings.crd=false,configuration.requireCRD=true": "write configuration.requireCRD alone",
    "settings.exempt-namespace={a},configuration.historyTTL=1h": "configuration.exemptNamespaces",
    "probes.startup.httpGet.path=/x": "additional properties 'httpGet' not allowed",
    "monitoring.prometheusRule.runbookURL=docs/x.md": "'docs/x.md' does not match pattern",
    "mode=static-pod,replicas=2": "replicas: each node of the control plane has one static pod",
}


@pytest.mark.parametrize("given", REFUSED)
def test_a_value_that_cannot_be_is_refused_with_its_name_and_a_remedy(
    helm: Path, given: str
) -> None:
    # "interval=5" is a number in YAML, as long as nobody quotes it.
    command = [helm, *TEMPLATE, "--set-string" if "interval" in given else "--set", given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert REFUSED[given] in done.stderr


def test_settings_beside_other_fields_of_the_configuration_are_taken(helm: Path) -> None:
    render(helm, "--set=settings.log-level=debug,configuration.logging.format=json")


@pytest.mark.parametrize("page", ["base", "standby"])
@pytest.mark.parametrize("tag", ["v1.35.4", "v1.36.3"])
def test_one_image_of_a_kustomization_names_every_kube_scheduler(
    tmp_path: Path, page: str, tag: str
) -> None:
    """The line that docs/install.md adds; a kube-scheduler may not be newer than its API server."""
    (tmp_path / "scheduler-config").symlink_to(MANIFESTS)
    kustomization = {
        "resources": [f"scheduler-config/{page}"],
        "images": [{"name": "registry.k8s.io/kube-scheduler", "newTag": tag}],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    pods = [
        each["spec"]["template"]["spec"]
        for key, each in kustomize(tmp_path).items()
        if key[0] == "Deployment"
    ]
    images = [each["image"] for pod in pods for each in pod["containers"]]
    schedulers = [each for each in images if "kube-scheduler" in each]
    assert schedulers == [f"registry.k8s.io/kube-scheduler:{tag}"]


@pytest.mark.parametrize(
    "flags",
    [
        ("--set=mode=standby",),
        ("--set=mode=standby", "--set=tls.certManager.issuerRef.name=own"),
        ("--set=webhooks.enabled=true", f"--set=networkPolicy.webhooksFrom={{{CALLERS}}}"),
        ("--set=grpc.enabled=true",),
    ],
)
def test_cert_managers_own_schema_takes_the_certificates(
    helm: Path, control_plane: ControlPlane, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    admin, crds = control_plane.kubeconfig, Path(__file__).parent / "crd-cert-manager.yaml"
    kubectl(admin, "apply", "--server-side", "-f", str(crds))
    kubectl(admin, "wait", "--for=condition=Established", "-f", str(crds))
    found = render(helm, "--set=tls.certManager.enabled=true", *flags)
    made = [each for each in found.values() if each["apiVersion"] == "cert-manager.io/v1"]
    assert made
    for each in made:
        each["metadata"]["namespace"] = "default"
    (tmp_path / "made.yaml").write_text(yaml.safe_dump_all(made))
    strict = ("--dry-run=server", "--validate=strict")
    kubectl(admin, "apply", "--server-side", *strict, "-f", str(tmp_path / "made.yaml"))
    made[-1]["spec"]["nobodyKnows"] = 1
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump_all(made))
    with pytest.raises(subprocess.CalledProcessError):
        kubectl(admin, "apply", "--server-side", *strict, "-f", str(tmp_path / "wrong.yaml"))
    kubectl(admin, "delete", "-f", str(crds))


def test_helm_finds_nothing_wrong_with_the_chart(helm: Path) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in _run(helm, "lint", "--strict", CHART)
