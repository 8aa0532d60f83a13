"""The command line as docs/cli.md shows it, through the kubeconfig and a port-forward."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from kubernetes.utils import FailToCreateError, create_from_dict

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import service_account_kubeconfig
from hack.controlplane.nodes import create_nodes
from hack.programs import started
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import shop
from tests.e2e.forwarding import reserver_pod
from tests.e2e.shell import Shell, normal

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/cli.md"
USERS = ROOT / "scheduler-config/core/rbac-users.yaml"
POLICY = ROOT / "scheduler-config/rebalance/core/policy.yaml"

_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def served(
    control_plane: ControlPlane,
    api: Any,
    reserver_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ReserverProcess]:
    """Reserver with its gRPC API, three nodes, and two pods that wait in the namespace shop."""
    folder = tmp_path_factory.mktemp("cli-reserver")
    extended = {"nvidia.com/gpu": "2"}
    nodes = create_nodes(
        control_plane.kubeconfig, 3, cpu="4", memory="16Gi", extended=extended, prefix="worker"
    )
    flags = ("--grpc-address", "127.0.0.1:0")
    with (
        shop(api, control_plane.kubeconfig, {}),
        ReserverProcess(reserver_kubeconfig, folder / "log", *flags) as process,
    ):
        api.create_namespaced_pod("shop", _waiting("stranger"))
        yield process
    for node in nodes:
        api.delete_node(node)


def _waiting(name: str) -> dict[str, Any]:
    """Return a pod that no scheduler takes."""
    resources = {"requests": {"cpu": "2"}}
    container = {"name": "main", "image": "none", "resources": resources}
    spec = {
        "schedulerName": "nobody",
        "containers": [container],
        "nodeSelector": {"kubernetes.io/hostname": "worker-3"},
    }
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def forwarded(
    control_plane: ControlPlane,
    api: Any,
    served: ReserverProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """A pod that reserver seems to run in."""
    folder = tmp_path_factory.mktemp("cli-kubelet")
    port = int(served.grpc_address.rpartition(":")[2])
    with reserver_pod(api, control_plane.kubeconfig, folder, port) as name:
        yield name


@pytest.fixture
def shell(control_plane: ControlPlane, served: ReserverProcess, tmp_path: Path) -> Shell:
    """A shell whose commands go to reserver's address."""
    shell = Shell(tmp_path, control_plane.kubeconfig)
    shell.environment["RESERVER_ADDRESS"] = served.grpc_address
    shell.run("reserver release --all --yes")
    return shell


def test_the_page_shows_what_happens(shell: Shell, forwarded: str) -> None:
    """Every command of docs/cli.md prints the text of the page, through the kubeconfig."""
    assert forwarded
    del shell.environment["RESERVER_ADDRESS"]
    for kind, block in _BLOCK.findall(PAGE.read_text()):
        if kind == "yaml":
            name = block.partition("\n")[0].removeprefix("# ")
            (shell.folder / name).write_text(block)
            continue
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, expected = step.partition("\n")
            said = shell.run(line)
            assert normal(said) == normal(expected), f"{line}\n{said}"


def test_every_command_is_on_the_page() -> None:
    text = PAGE.read_text()
    for command in (
        "create",
        "apply",
        "update",
        "validate",
        "extend",
        "release",
        "get",
        "describe",
    ):
        assert f"$ reserver {command} " in text or f"$ reserver {command}\n" in text
    for command in ("top nodes", "explain pod"):
        assert f"$ reserver {command}" in text


def test_kubectl_completes_names_of_reservations(shell: Shell, forwarded: str) -> None:
    assert forwarded
    shell.run("reserver create seat-1 --node worker-1 --owner pod/a --cpu 1")
    told = shell.until("kubectl __complete reserver describe se", "seat-1").splitlines()
    assert told[0] == "seat-1"
    assert ":4" in told
    shell.until("kubectl __complete reserver top nodes worker-", "worker-1")
    assert "--owner" in shell.run("kubectl __complete reserver get --own")


def test_a_round_of_rebalancing_reads_what_is_held_through_a_port_forward(
    shell: Shell, forwarded: str
) -> None:
    """The pod that waits for worker-3 gets no room that is held there for another owner."""
    assert forwarded
    shell.run("reserver create all --node worker-3 --owner pod/other -n shop --cpu 4")
    del shell.environment["RESERVER_ADDRESS"]
    run = "reserver rebalance run --make-room --mode reserve-first --dry-run"
    stay = re.compile(r"0 pods would be moved to make room for 0, .*, ([01]) stay that")
    said = [shell.run(f"{run} {flag}") for flag in ("", "--without-holds")]
    found = [stay.search(each) for each in said]
    assert [each and each[1] for each in found] == ["1", "0"], said


def test_a_watch_tells_each_change_and_ends_with_ctrl_c(shell: Shell) -> None:
    words = ("reserver", "watch", "-o", "json", "--owner", "pod/watched", "-n", "shop")
    pipe = subprocess.PIPE
    with started(*words, env=shell.environment, stdout=pipe, stderr=pipe, text=True) as watching:
        assert watching.stdout is not None
        flags = "--node worker-1 --owner pod/watched -n shop --cpu 1"
        shell.run(f"reserver create watched {flags}")
        first = json.loads(watching.stdout.readline())
        assert (first["change"], first["reservation"]["name"]) == ("added", "watched")
        shell.run("reserver release watched")
        last = first
        while last["change"] != "deleted":
            last = json.loads(watching.stdout.readline())
        watching.send_signal(signal.SIGINT)
        output, errors = watching.communicate(timeout=30)
        assert (watching.returncode, output, errors) == (130, "", "")


def test_what_is_printed_can_be_created_again(shell: Shell) -> None:
    flags = "--node worker-1 --owner app=web --owner job/batch -n reserver-system --cpu 250m"
    shell.run(
        f"reserver create again {flags} --slots 3 --reusable --preemptible --priority 7 --ttl 0"
    )
    before = json.loads(shell.run("reserver get again -o json"))
    assert shell.run("reserver get again -o yaml > again.yaml; reserver release again") == (
        "again released\n"
    )
    assert shell.run("reserver create -f again.yaml") == (
        "again created: 3 slots of 250m CPU on worker-1 held for reserver-system/app=web; "
        "reserver-system/job/batch, for ever\n"
    )
    after = json.loads(shell.run("reserver get again -o json"))
    assert after["spec"] == before["spec"]
    assert after["spec"]["ttl"] == "0"


def test_a_user_without_the_right_to_forward_is_told_so(
    shell: Shell, forwarded: str, kubeconfig: Path
) -> None:
    assert forwarded
    del shell.environment["RESERVER_ADDRESS"]
    (shell.folder / "nobody").write_text(kubeconfig.read_text())
    shell.run("kubectl create serviceaccount nobody -n shop")
    shell.run(
        "kubectl config set-credentials user --kubeconfig nobody "
        "--token $(kubectl create token nobody -n shop)"
    )
    told = shell.run("reserver get --kubeconfig nobody; echo $?")
    assert "403 Forbidden: pods is forbidden" in told
    assert told.startswith("1\n")


def test_over_tls_it_is_known_by_the_token_of_the_kubeconfig(
    shell: Shell, api: Any, control_plane: ControlPlane, reserver_kubeconfig: Path
) -> None:
    """At an address that is not loopback, and through a pod that serves over TLS."""
    ca, namespace = trustme.CA(), "shop"
    certificate = ca.issue_cert("0.0.0.0", f"reserver.{namespace}.svc")
    certificate.private_key_pem.write_to_path(shell.folder / "tls.key")
    certificate.cert_chain_pems[0].write_to_path(shell.folder / "tls.crt")
    ca.cert_pem.write_to_path(shell.folder / "ca.crt")
    flags = [
        f"--tls-cert-file={shell.folder}/tls.crt",
        f"--tls-private-key-file={shell.folder}/tls.key",
        f"--grpc-client-ca-file={shell.folder}/ca.crt",
        "--grpc-address=0.0.0.0:0",
    ]
    own = "--ca-file ca.crt --client-certificate tls.crt --client-key tls.key"
    log = shell.folder / "log"
    with ReserverProcess(reserver_kubeconfig, log, *flags, wait_ready=False) as process:
        shell.environment["RESERVER_ADDRESS"] = process.grpc_address
        wait_for(lambda: '"event": "ready"' in log.read_text(), "reserver is ready")
        assert "NODE" in shell.run(f"reserver top nodes {own}")
        told = shell.run(f"reserver get {own} --token nonsense; echo $?")
        assert told.startswith("1\n")
        assert "send a token that the API server knows" in told
        assert "cannot reach reserver at" in shell.run("reserver get --ca-file ca.crt")
        assert "--client-key: is missing" in shell.run(f"reserver get {own[:-21]}")
        del shell.environment["RESERVER_ADDRESS"]
        port = int(process.grpc_address.rpartition(":")[2])
        kubeconfig = control_plane.kubeconfig
        with reserver_pod(api, kubeconfig, shell.folder, port, namespace):
            assert "NODE" in shell.run(f"reserver top nodes --reserver-namespace shop {own}")


def test_who_may_not_forward_is_told_so_at_once(
    shell: Shell, forwarded: str, api: Any, kubeconfig: Path
) -> None:
    """The right to read pods is not enough; the Role `reserver-cli` is."""
    assert forwarded
    del shell.environment["RESERVER_ADDRESS"]
    (shell.folder / "user").write_text(kubeconfig.read_text())
    shell.run("kubectl create serviceaccount user -n shop")
    shell.run(
        "kubectl config set-credentials user --kubeconfig user "
        "--token $(kubectl create token user -n shop)"
    )
    given = "--serviceaccount shop:user -n reserver-system"
    shell.run("kubectl create role looks --verb get,list --resource pods -n reserver-system")
    shell.run(f"kubectl create rolebinding looks --role looks {given}")
    words = "403 Forbidden: the API server opens no WebSocket; ask for a RoleBinding to"
    told = shell.until("reserver get --kubeconfig user; echo status $?", words)
    assert "status 1" in told
    documents = yaml.safe_load_all(USERS.read_text())
    (role,) = [each for each in documents if each["metadata"]["name"] == "reserver-cli"]
    with suppress(FailToCreateError):  # Another test has created it.
        create_from_dict(api.api_client, role)
    shell.run(f"kubectl create rolebinding reserver-cli --role reserver-cli {given}")
    shell.until("reserver top nodes --kubeconfig user", "NODE")


WITHOUT_RIGHTS = {
    "get": ("list", "pods", "RoleBinding to the Role reserver-cli in reserver-system"),
    "moves": ("list", "podmoves", "RoleBinding to the ClusterRole reserver-edit"),
    "move shop/a": ("create", "podmoves", "RoleBinding to the ClusterRole reserver-edit"),
    "moves pause a": ("patch", "podmoves", "RoleBinding to the ClusterRole reserver-edit"),
    "drain worker-1": ("list", "pods", "role with this right"),  # It looks before it cordons.
    "rebalance plan --defragment": ("list", "nodes", "role with this right"),
    f"rebalance run --dry-run --policy-config-file {POLICY}": (
        "list",
        "nodes",
        "role with this right",
    ),
}
"""Commands of a user without rights: the refusal, and the right to request."""


def test_without_rights_each_command_says_which_is_missing_and_what_to_ask_for(
    shell: Shell, kubeconfig: Path
) -> None:
    del shell.environment["RESERVER_ADDRESS"]
    service_account_kubeconfig(kubeconfig, "shop", "default", shell.folder / "nobody")
    shell.environment["KUBECONFIG"] = "nobody"
    for line, (verb, resource, remedy) in WITHOUT_RIGHTS.items():
        said = shell.run(f"reserver {line}; echo status $?")
        assert "status 1" in said.splitlines(), said
        assert f'cannot {verb} resource "{resource}"' in said
        assert f"; ask for a {remedy}" in said
        assert "Traceback" not in said


def test_without_a_ready_pod_it_says_where_it_looked(shell: Shell) -> None:
    del shell.environment["RESERVER_ADDRESS"]
    told = shell.run("reserver get --reserver-namespace kube-system; echo $?")
    assert "3" in told.splitlines()
    assert "no ready Reserver pod found in namespace kube-system: no such pod" in told
