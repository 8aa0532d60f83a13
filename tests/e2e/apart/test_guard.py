"""The guard: the objects that all holds depend on are deleted only with a confirmation."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.controlplane.build import bin_dir
from hack.controlplane.cluster import ControlPlane
from hack.reserver_process import wait_for
from tests.installing import Reader, empty_cluster, reading

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/backup-and-restore.md"
HOME = "reserver-system"
KUSTOMIZATION = """\
resources: [scheduler-config/core]
components: [scheduler-config/components/moves, scheduler-config/components/guard]
"""
CRDS = ("reservations", "reservationquotas", "podmoves", "podmovegroups")
GUARDED = (
    *(f"crd/{name}.reserver.io" for name in CRDS),
    "configmap/reservations",
    "serviceaccount/reserver",
    "secret/reserver-token",
    f"namespace/{HOME}",
)
FREE = ("configmap/notes", "secret/notes", "serviceaccount/notes", "namespace/notes")


class Guarded:
    """A cluster with the guard."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self.folder = plane, folder

    def run(self, line: str) -> tuple[int, str]:
        options = (f"--kubeconfig={self.plane.kubeconfig}", f"--namespace={HOME}")
        command = (str(bin_dir() / "kubectl"), *options, *line.split())
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder)
        return done.returncode, done.stdout + done.stderr

    def does(self, line: str) -> str:
        code, said = self.run(line)
        assert code == 0, said
        return said

    def refuses(self, line: str) -> bool:
        code, said = self.run(line)
        return code == 1 and "annotate it with reserver.io/allow-deletion=true" in said


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "scheduler-config").symlink_to(ROOT / "scheduler-config")
    (folder / "kustomization.yaml").write_text(KUSTOMIZATION)
    with ControlPlane() as plane:
        cluster = Guarded(plane, folder)
        cluster.does("apply -k .")
        cluster.does("apply -f scheduler-config/static-pod/token.yaml")
        for each in FREE:
            kind, _, name = each.partition("/")
            cluster.does(f"create {'secret generic' if kind == 'secret' else kind} {name}")
        wait_for(
            lambda: cluster.refuses("delete --dry-run=server configmap/reservations"),
            "the policy is in force",
        )
        yield cluster


@pytest.mark.parametrize("what", GUARDED)
def test_what_holds_depend_on_is_not_deleted(guarded: Guarded, what: str) -> None:
    assert guarded.refuses(f"delete --dry-run=server {what}")


@pytest.mark.parametrize("what", FREE)
def test_anything_else_is(guarded: Guarded, what: str) -> None:
    guarded.does(f"delete --dry-run=server {what}")


def test_nor_are_all_at_once(guarded: Guarded) -> None:
    assert guarded.refuses("delete configmaps,serviceaccounts,secrets --all")
    assert guarded.refuses("delete crd --all")
    path = f"/api/v1/namespaces/{HOME}/configmaps"
    assert guarded.refuses(f"delete --raw {path}")
    guarded.does("get configmap/reservations serviceaccount/reserver secret/reserver-token")


def test_a_reservation_is_released_as_ever(guarded: Guarded) -> None:
    body = """\
apiVersion: reserver.io/v1alpha1
kind: Reservation
metadata: {name: seat}
spec: {owners: [{pod: {name: web}}], resources: {cpu: "1"}, node: worker}
"""
    (guarded.folder / "seat.yaml").write_text(body)
    wait_for(lambda: guarded.run("get reservations")[0] == 0, "the CRD is served")
    guarded.does("apply -f seat.yaml")
    guarded.does("delete reservation/seat")


@pytest.mark.parametrize("what", GUARDED)
def test_with_the_annotation_it_may_go(guarded: Guarded, what: str) -> None:
    guarded.does(f"annotate {what} reserver.io/allow-deletion=true")
    guarded.does(f"delete --dry-run=server {what}")
    guarded.does(f"annotate {what} reserver.io/allow-deletion=false --overwrite")
    # The API server judges by its cache of namespaces.
    wait_for(lambda: guarded.refuses(f"delete --dry-run=server {what}"), "it is guarded again")
    guarded.does(f"annotate {what} reserver.io/allow-deletion-")


def test_the_namespace_annotated_goes_with_all_that_is_in_it(guarded: Guarded) -> None:
    guarded.does(f"annotate namespace {HOME} reserver.io/allow-deletion=true")
    wait_for(lambda: guarded.run("delete configmap/reservations")[0] == 0, "it may be deleted")
    guarded.does(f"delete namespace {HOME} --timeout=60s")
    assert "NotFound" in guarded.run(f"get namespace {HOME}")[1]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with empty_cluster() as plane:
        yield reading(plane, tmp_path)


@pytest.mark.parametrize("way", ["With Helm", "With kustomize"])
def test_it_is_uninstalled_by_the_steps_of_the_pages(reader: Reader, way: str) -> None:
    (reader.folder / "values.yaml").write_text("guard: {enabled: true}\n")
    kustomization = reader.folder / "kustomization.yaml"
    before = kustomization.read_text()
    text = before.replace("components: [", "components: [scheduler-config/components/guard, ")
    assert text != before
    kustomization.write_text(text)
    reader.follow(way, but="rollout status")
    refused = f"! kubectl delete namespace {HOME} --dry-run=server 2>/dev/null && echo refused"
    wait_for(lambda: "refused" in reader.run(f"{refused} || true"), "the guard is in force")
    reader.follow("The guard", page=PAGE)
    # The API server does not retry at once to delete objects of a kind that it cannot list yet.
    listed = "kubectl get reservations,reservationquotas -A >/dev/null 2>&1 && echo listed"
    wait_for(lambda: "listed" in reader.run(f"{listed} || true"), "objects of each kind are listed")
    reader.follow("Uninstall", but="delete -k" if way == "With Helm" else "helm")
    assert not reader.left()
