"""Versions of Reserver, each run while strangers ask for held capacity; their files."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane.build import bin_dir
from hack.controlplane.cluster import ControlPlane
from hack.go_tool import HELM
from hack.programs import done
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.test_kept import (
    ROOT,
    STRANGER,
    Cluster,
    Strangers,
    bind,
)

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(300)]

FLAGS = ("--pod-moves", "--default-quota=none", "--crd", "--reservation-store=object")
RULES = "resources: [VERSION/scheduler-config/base]\n"


RULES += "components: [VERSION/scheduler-config/components/moves]\n"


class Operator:
    """An operator with the files of both versions, who runs the commands of docs/upgrade.md."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self.folder = plane, folder
        (folder / "helm").symlink_to(HELM.build())

    @property
    def _programs(self) -> tuple[Path | str, ...]:
        return self.folder, bin_dir(), Path(sys.executable).parent, os.environ["PATH"]

    def run(self, line: str, status: int = 0) -> str:
        told = done(
            *("bash", "-c", line),
            timeout_s=60,
            cwd=self.folder,
            env={
                "PATH": ":".join(map(str, self._programs)),
                "KUBECONFIG": str(self.plane.kubeconfig),
                "HOME": str(self.folder),
            },
        )
        assert told.returncode == status, f"{line}\n{told.stdout}{told.stderr}"
        return str(told.stdout)

    def kustomize(self, version: str) -> None:
        """Apply the files of a version."""
        (self.folder / "kustomization.yaml").write_text(RULES.replace("VERSION", version))
        self.run("kubectl apply -k .")


@contextmanager
def serving(
    world: Cluster,
    log: Path,
    held: Sequence[str],
    program: Sequence[str] = (),
    flags: Sequence[str] = FLAGS,
) -> Iterator[ReserverProcess]:
    """Run a version of Reserver while strangers ask for held nodes, and check that none passes."""
    more: dict[str, Any] = {"program": program, "logs_addresses": False} if program else {}
    stranger = world.add_pod(f"of-{log.name}", STRANGER)
    process = ReserverProcess(world.plane.kubeconfig, log, *flags, wait_ready=False, **more)
    with process as reserver:
        strangers = Strangers(reserver, stranger, list(held))
        strangers.start()
        try:
            reserver.wait_ready()
            yield reserver
            wait_for(lambda: strangers.free > 20, "strangers were judged")
        finally:
            strangers.over.set()
            strangers.join()
        assert not strangers.lost, log.name
        for node in held:
            assert "held by" in answer(reserver, stranger, node), (log.name, node)


def answer(reserver: ReserverProcess, pod: dict[str, Any], node: str) -> str:
    """Return the error of Bind once the watches are up to date; empty if the pod is bound."""

    def said() -> tuple[str] | None:
        told = bind(reserver, pod, node)
        return None if "is out of date" in told else (told,)

    return wait_for(said, f"{node} is judged")[0]


def newer_version(folder: Path) -> tuple[str, ...]:
    """Return a program like this one whose reservations have three more fields."""
    shutil.copytree(ROOT / "reserver", folder / "reserver")
    codec = folder / "reserver/stores/codec"
    for file, after, fields in (
        ("spec_codec.py", "    owners: list[OwnerEntry]\n    resources", "tenancy slots_per_pod"),
        ("owner_codec.py", "    replaces: _Replaced | None = None\n", "tier"),
    ):
        text = (codec / file).read_text()
        assert after in text
        more = "".join(f"    {field}: str | int = 0\n" for field in fields.split())
        before, _, rest = text.partition(after)
        at = rest.index("\n") + 1 if "resources" in after else 0
        (codec / file).write_text(before + after + rest[:at] + more + rest[at:])
    (folder / "kube_reserver-9.0.0.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: kube-reserver\nVersion: 9.0.0\n"
    (folder / "kube_reserver-9.0.0.dist-info/METADATA").write_text(metadata)
    return ("env", f"PYTHONPATH={folder}", sys.executable, "-P", "-m", "reserver")
