"""The image, built by the Dockerfile and run by an OCI runtime with a real control plane.

Its base is made of Debian's packages, where no registry is reached (`hack/image/build.py`).
Building it takes two minutes, Debian's buildah, mmdebstrap and runc, and root.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import service_account_kubeconfig
from hack.controlplane.scheduler_config import render_scheduler_config
from hack.image.build import Image, build
from hack.image.container import Container
from hack.reserver_process import wait_for
from tests.installing import (
    NAMESPACE,
    ROOT,
    Reader,
    containers,
    empty_cluster,
    hold,
    reading,
    see_it_kept,
)

pytestmark = pytest.mark.timeout(900)

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
MOST_OURS = 80 << 20
"""The bytes that a node pulls in addition to the base image."""
SHELLS = ("sh", "bash", "dash", "rbash")
USER = 65532


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    made = build(tmp_path_factory.mktemp("image"))
    for folder in ("bin", "usr/bin"):
        for shell in SHELLS:
            (made.files / folder / shell).unlink(missing_ok=True)
    return made


@pytest.fixture(scope="module")
def ours(image: Image) -> Path:
    """The layers of the image above its base."""
    return image.files / "opt/reserver"


def test_it_says_who_runs_what(image: Image) -> None:
    assert image.config["User"] == f"{USER}:{USER}"
    assert image.config["Entrypoint"] == ["reserver"]
    assert not image.config.get("Cmd")


def test_it_adds_one_small_layer_to_its_base(image: Image) -> None:
    _, added = image.layers
    assert added < MOST_OURS


def test_nobody_but_root_may_change_what_is_in_it(ours: Path) -> None:
    for path in ours.rglob("*"):
        found = path.lstat()
        assert (found.st_uid, found.st_gid) == (0, 0), path
        if not path.is_symlink():
            forbidden = stat.S_IWGRP | stat.S_IWOTH | stat.S_ISUID | stat.S_ISGID
            assert not found.st_mode & forbidden, path


def test_all_of_it_is_compiled(ours: Path) -> None:
    """The container's root file system is read-only."""
    packages = next(ours.glob("lib/python3*/site-packages"))
    sources = list((packages / "reserver").rglob("*.py"))
    assert len(sources) > 300
    for source in sources:
        assert list((source.parent / "__pycache__").glob(f"{source.stem}.cpython-3*.pyc")), source
    # By the hash of the source, unchecked: a file's time, which differs by build, is not looked at.
    assert {each.read_bytes()[4] for each in packages.rglob("*.pyc")} == {1}


def test_the_sbom_lists_what_is_installed(ours: Path) -> None:
    subprocess.run(["make", "sbom"], cwd=ROOT, check=True)
    listed = json.loads((ROOT / "dist/reserver.cdx.json").read_text())["components"]
    versions = {each["name"].lower().replace("_", "-"): each["version"] for each in listed}
    found = [
        path.name.removesuffix(".dist-info").rpartition("-")
        for path in ours.glob("lib/python3*/site-packages/*.dist-info")
    ]
    installed = {name.lower().replace("_", "-"): version for name, _, version in found}
    assert installed.pop("kube-reserver")
    assert len(installed) > 30
    assert not installed.items() - versions.items()
    assert "pip" not in installed


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with empty_cluster() as plane:
        yield plane


def account_folder(plane: ControlPlane, name: str, folder: Path) -> Path:
    """Write a service account's files as the kubelet mounts them, for the pod's user alone."""
    service_account_kubeconfig(plane.kubeconfig, NAMESPACE, name, folder / "account")
    said = yaml.safe_load((folder / "account").read_text())
    mounted = folder / "serviceaccount"
    mounted.mkdir()
    (mounted / "token").write_text(said["users"][0]["user"]["token"])
    (mounted / "ca.crt").write_bytes(plane.ca_file.read_bytes())
    (mounted / "namespace").write_text(NAMESPACE)
    for path in mounted.iterdir():
        os.chown(path, USER, USER)
        path.chmod(0o600)
    return mounted


def probe(container: Container, which: dict[str, Any]) -> bool:
    return container.run(which["exec"]["command"]).returncode == 0


def is_up(container: Container, spec: dict[str, Any]) -> bool:
    assert container.process.poll() is None, container.log.read_text()
    return probe(container, spec["readinessProbe"])


def test_a_pod_of_it_keeps_seats_beside_a_stock_kube_scheduler(
    image: Image, cluster: ControlPlane, tmp_path: Path
) -> None:
    """As docs/install.md has it, with no shell in it, and none of its files writable."""
    reader = reading(cluster, tmp_path)
    reader.follow("With kustomize")
    pod = reader.get("deployment reserver-scheduler")["spec"]["template"]["spec"]
    spec = containers(pod)["reserver"]
    server = re.fullmatch(r"https://([\d.]+):(\d+)", cluster.url)
    assert server is not None, cluster.url
    env = {"KUBERNETES_SERVICE_HOST": server[1], "KUBERNETES_SERVICE_PORT": server[2]}
    mounts = {ACCOUNT: account_folder(cluster, pod["serviceAccountName"], tmp_path)}
    with Container(image, pod, spec, tmp_path, env=env, mounts=mounts) as container:
        wait_for(lambda: is_up(container, spec), "it is ready")
        assert probe(container, spec["livenessProbe"])
        see_what_it_may(container)
        start_scheduler(reader)
        hold(reader, "image")
        asked = container.run(["reserver", "get"])
        assert "Active" in asked.stdout, asked
        see_it_kept(reader, "reserver-scheduler", "image")
        reader.plane.stop_scheduler("second")
        assert probe(container, spec["readinessProbe"])
        assert container.stop() == 0, container.log.read_text()
    assert "Traceback" not in container.log.read_text()
    reader.follow("Uninstall", but="helm")
    assert not reader.left()


def see_what_it_may(container: Container) -> None:
    """See that its processes have no rights, and that nothing can be written."""
    for process in container.processes():
        status = Path(f"/proc/{process}/status").read_text()
        said = dict(re.findall(r"^(\w+):\s+(.*)$", status, re.MULTILINE))
        assert set(said["Uid"].split()) == {str(USER)}
        assert int(said["CapEff"], 16) == int(said["CapBnd"], 16) == 0
        assert said["NoNewPrivs"] == "1"
    line = "open('/opt/reserver/new', 'w')"
    assert "Read-only file system" in container.run(["python", "-c", line]).stderr
    assert container.run(["sh", "-c", "true"]).returncode != 0


def start_scheduler(reader: Reader) -> None:
    """Start the other container of the pod; its calls go to the port that the manifests say."""
    config = reader.folder / "scheduler.yaml"
    name = next(
        each["configMap"]["name"]
        for each in reader.get("deployment reserver-scheduler")["spec"]["template"]["spec"][
            "volumes"
        ]
        if each["name"] == "config"
    )
    config.write_text(reader.get(f"configmap {name}")["data"]["kube-scheduler.yaml"])
    account = reader.folder / "account"
    config.write_text(render_scheduler_config(config, kubeconfig=account))
    reader.plane.start_scheduler(config, "second", leader_elect=True)
