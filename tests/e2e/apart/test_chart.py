"""The chart renders what kustomize does, and refuses values that cannot be."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.chart import CHART
from hack.controlplane.build import bin_dir
from hack.go_tool import HELM

pytestmark = pytest.mark.controlplane  # for its kubectl

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "scheduler-config"
Key = tuple[str, str, str]

COMPONENTS = tuple(sorted(each.name for each in (MANIFESTS / "components").iterdir()))
BASES = {"base": "sidecar", "standby": "standby"}
TEMPLATE = (
    "template",
    "reserver",
    str(CHART),
    "--namespace=reserver-system",
    "--kube-version=v1.37.0",
)
VALUES = {"capacity-buffers": "capacityBuffers"}
"""The values of components that have another name there."""

NEEDED = {"capacity-buffers": ("autoscalers",)}
"""What a component needs beside itself."""

KEEP = {"helm.sh/resource-policy": "keep"}


@pytest.fixture(scope="session")
def helm() -> Path:
    """Helm, built if it is not there."""
    return HELM.build()


def render(helm: Path, *flags: str) -> dict[Key, Any]:
    """Return what the chart renders, as the cluster's own version would have it."""
    return by_key(_run(helm, *TEMPLATE, *flags))


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
        if name.startswith("kube-scheduler-config-"):
            name = "kube-scheduler-config"
        key = (each["kind"], metadata.get("namespace", ""), name)
        assert key not in found, f"{key} is rendered twice"
        found[key] = each
    return found


def without_differences(rendered: dict[Key, Any]) -> dict[Key, Any]:
    """Return the objects without that in which kustomize and Helm differ on purpose.

    - The namespace: Helm's is the release's, which `--create-namespace` makes; an object of the
      chart with that name would be in its way.
    - CRDs stay when a release is uninstalled.
    - The hash in the name of kube-scheduler's configuration is that of another function.
    - A list of things with names has no order for Kubernetes, and comments are no content.
    """
    found = {}
    for key, each in rendered.items():
        if key[0] == "Namespace":
            continue
        metadata = each["metadata"]
        if metadata.get("annotations") == KEEP and key[0] == "CustomResourceDefinition":
            del metadata["annotations"]
        if key[2] == "kube-scheduler-config":
            metadata["name"] = key[2]
        if key[0] == "ConfigMap":
            each["data"] = {
                name: yaml.safe_load(text) for name, text in each.get("data", {}).items()
            }
        found[key] = _by_name(each)
    return found


def _by_name(value: Any) -> Any:
    if isinstance(value, dict):
        if (value.get("configMap") or {}).get("name", "").startswith("kube-scheduler-config-"):
            value = {**value, "configMap": {"name": "kube-scheduler-config"}}
        return {key: _by_name(each) for key, each in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(each, dict) and "name" in each for each in value):
            return {each["name"]: _by_name(each) for each in value}
        return [_by_name(each) for each in value]
    return value


CALLERS = "192.0.2.0/28"
"""Where API servers call webhooks from: without that nobody is let in (docs/patches.md)."""

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


VARIANTS = [
    (base, components)
    for base in BASES
    for components in [(), *((*NEEDED.get(each, ()), each) for each in COMPONENTS), COMPONENTS]
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
        render(helm, f"--set=mode={BASES[base]},image.tag=dev", *enabled(components)), wanted
    )


@pytest.mark.parametrize("way", ["deployment", "cronjob"])
def test_what_rebalances_by_itself_is_rendered_as_kustomize_does(helm: Path, way: str) -> None:
    wanted = kustomize(MANIFESTS / "base") | kustomize(MANIFESTS / "rebalance" / way)
    assert_same(render(helm, "--set=rebalance.enabled=true", f"--set=rebalance.run={way}"), wanted)


def test_rounds_beside_standby_are_rendered_as_kustomize_does_with_its_ca(helm: Path) -> None:
    wanted = kustomize(MANIFESTS / "standby") | kustomize(MANIFESTS / "rebalance/standby")
    settings = "rebalance.settings.make-room=true,rebalance.settings.mode=reserve-first"
    settings += ",rebalance.settings.dry-run=false"  # Its flag has no form with --no-.
    flags = ("--set=mode=standby,rebalance.enabled=true,image.tag=dev",)
    assert_same(render(helm, *flags), wanted)
    found = render(helm, *flags, f"--set=moves.enabled=true,{settings}")
    pod = found["Deployment", "reserver-system", "reserver-rebalance"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"][-2:] == ["--make-room", "--mode=reserve-first"]


def test_the_static_pods_files_are_rendered_as_kustomize_does(helm: Path) -> None:
    assert_same(render(helm, "--set=mode=static-pod"), kustomize(MANIFESTS / "static-pod"))


def test_no_object_names_a_namespace_that_the_release_is_not_in(helm: Path) -> None:
    flags = ("--namespace=elsewhere", *enabled(COMPONENTS))
    for mode in BASES.values():
        assert "reserver-system" not in _run(helm, *TEMPLATE, *flags, f"--set=mode={mode}")


SETTINGS = """\
image: {repository: registry.example/reserver, tag: "1.0", digest: "sha256:%s"}
imagePullSecrets: [pull]
kubeScheduler: {tag: v1.36.2, schedulerName: held}
replicas: 2
settings:
  default-quota: none
  configmap: [unicore/reservation]
  crd: true
  tracing: false
networkPolicy: {apiServerPorts: [8443]}
resources: {requests: {cpu: 2}}
podLabels: {team: platform}
podAnnotations: {seen: "yes"}
nodeSelector: {role: control}
tolerations: [{key: dedicated, operator: Exists}]
affinity: {nodeAffinity: {}}
""" % ("a" * 64)


def test_values_reach_what_they_are_for(helm: Path, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(SETTINGS)
    found = render(helm, f"--values={tmp_path / 'values.yaml'}")
    deployment = found["Deployment", "reserver-system", "reserver-scheduler"]
    template = deployment["spec"]["template"]
    pod = template["spec"]
    reserver, scheduler = pod["initContainers"][0], pod["containers"][0]
    assert deployment["spec"]["replicas"] == 2
    assert reserver["image"] == f"registry.example/reserver:1.0@sha256:{'a' * 64}"
    assert scheduler["image"] == "registry.k8s.io/kube-scheduler:v1.36.2"
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert reserver["args"][-4:] == [
        "--configmap=unicore/reservation",
        "--crd",
        "--default-quota=none",
        "--no-tracing",
    ]
    assert reserver["resources"] == {"requests": {"cpu": 2}}
    assert template["metadata"]["labels"] == {
        "app.kubernetes.io/name": "reserver",
        "team": "platform",
    }
    assert template["metadata"]["annotations"]["seen"] == "yes"
    assert pod["nodeSelector"] == {"role": "control"}
    assert [each["key"] for each in pod["tolerations"]][1:] == ["dedicated"]
    assert pod["affinity"] == {"nodeAffinity": {}}
    config = yaml.safe_load(
        found["ConfigMap", "reserver-system", "kube-scheduler-config"]["data"][
            "kube-scheduler.yaml"
        ]
    )
    assert config["profiles"] == [{"schedulerName": "held"}]
    policy = found["NetworkPolicy", "reserver-system", "reserver-scheduler"]["spec"]
    assert policy["egress"] == [{"ports": [{"port": 8443}]}]
    webhooks = "--set=webhooks.enabled=true,replicas=1,networkPolicy.webhooksFrom={192.0.2.0/28}"
    found = render(helm, f"--values={tmp_path / 'values.yaml'}", webhooks)
    policy = found["NetworkPolicy", "reserver-system", "reserver-scheduler"]["spec"]
    assert policy["ingress"][-1]["from"] == [{"ipBlock": {"cidr": "192.0.2.0/28"}}]
    # A store in another namespace needs Reserver's Role there.
    assert ("Role", "unicore", "reserver") in found
    assert ("RoleBinding", "unicore", "reserver") in found


REFUSED = {
    "mode=beside": "'/mode': value must be one of 'sidecar', 'standby', 'static-pod'",
    "imag.tag=x": "additional properties 'imag' not allowed",
    "replicas=0": "'/replicas': minimum: got 0, want 1",
    "settings.default-quot=none": "'/settings': additional properties 'default-quot' not allowed",
    "settings.namespace=x": "'/settings': additional properties 'namespace' not allowed",
    "settings.crd=maybe": "'/settings/crd': got string, want boolean",
    "settings.configmap={x}": 'settings.configmap: "x" names no ConfigMap; write NAMESPACE/NAME',
    "capacityBuffers.enabled=true": "set autoscalers.enabled: true, too",
    "settings.rebalance-mode=reserve-first": "write rebalance.settings.mode",
    "rebalance.run=within": "rebalance any more; write deployment or cronjob",
    "rebalance.settings.mode=reserve-first": "set moves.enabled: true, too",
    "rebalance.settings.make-room=true": "set rebalance.settings.mode: reserve-first, too",
    "rebalance.settings.leader-elect=true": "additional properties 'leader-elect' not allowed",
    "image.digest=abc": 'image.digest: "abc" is no digest; write sha256:',
    "rebalance.interval=5": 'rebalance.interval: "5" is no duration; write e.g. 5m',
    "rebalance.schedule=hourly": 'rebalance.schedule: "hourly" is no schedule of cron',
    "networkPolicy.extenderFrom={192.0.2.7}": '"192.0.2.7" is no CIDR; write e.g. 192.0.2.7/32',
    "webhooks.enabled=true,replicas=2": "leave out replicas, or set mode",
    "mode=static-pod,webhooks.enabled=true": "webhooks.enabled: no Service leads to a static pod",
    "webhooks.enabled=true": "networkPolicy.webhooksFrom: is empty, so no API server could call",
    "mode=standby,webhooks.enabled=true": "networkPolicy.webhooksFrom: is empty",
    "mode=static-pod,monitoring.enabled=true": "monitoring.enabled: no Service leads",
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


def test_helm_finds_nothing_wrong_with_the_chart(helm: Path) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in _run(helm, "lint", "--strict", CHART)
