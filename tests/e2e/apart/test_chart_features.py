"""Objects of the chart by feature: extenders, certificates, static pods, notes, helm test."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from hack.chart import CHART
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import kubectl
from reserver.cli import serve
from reserver.settings.configuration_file import configured
from tests.e2e.apart.rendering import (
    BASES,
    CALLERS,
    HOME,
    MANIFESTS,
    components_of,
    enabled,
    kustomize,
    render,
    stdout_of,
)

pytestmark = pytest.mark.controlplane  # for its kubectl


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
    given_by_flags = serve.read_plainly(args, {})
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
    told = stdout_of(helm, "install", "mine", CHART, *flags)
    _, _, notes = told.partition("NOTES:")
    expected = {
        "sidecar": ("deployment/reserver-scheduler", "schedulerName: reserver-scheduler"),
        "standby": ("deployment/reserver\n", "kube-scheduler-extender.yaml"),
        "static-pod": ("reserver-static-pod", "docs/install.md"),
    }
    assert all(each in notes for each in expected[mode]), notes


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
    assert "1 chart(s) linted, 0 chart(s) failed" in stdout_of(helm, "lint", "--strict", CHART)
