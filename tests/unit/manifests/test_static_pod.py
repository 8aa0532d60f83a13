"""The static pods: the sidecar and the second kube-scheduler."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from reserver.k8s.serving_pod import LABEL, STATIC_NAMESPACE
from reserver.settings.flags import parse_address
from tests.unit.manifests.documents import MANIFESTS, documents, flags


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
    """Create a kubectl of another version than the cluster's; return the PATH with it."""
    folder.mkdir()
    output = f"clientVersion:\n  gitVersion: v1.99.0\nserverVersion:\n  gitVersion: {server}\n"
    (folder / "kubectl").write_text(f"#!/bin/sh\ncat <<'E'\n{output}E\n")
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
    # On the host's network every process reaches ports on loopback.
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
    """Return an extender entry for Filter and one for Bind, each with its own connections."""
    of_filter = {"filterVerb", "preemptVerb"}
    return [
        {key: value for key, value in extender.items() if key not in others}
        for others in ({"bindVerb"}, of_filter)
    ]


FILES = ("kubeconfig", "tls_cert_file", "tls_private_key_file", "extender_client_ca_file")
