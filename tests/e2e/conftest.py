"""The cluster that the scenarios run on: a real control plane with reserver in front of it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.utils import FailToCreateError, create_from_dict

from hack.bed.bed import scheduling
from hack.bed.mishaps import Mishaps
from hack.bed.proxy import Proxy
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import service_account_kubeconfig
from hack.reserver_process import ReserverProcess, wait_for
from reserver.reservations.enums import StoreKind
from tests.e2e.cluster import Corner
from tests.e2e.forms import CONFIG_MAP_FORMS, FORMS, NAMED_STORE, STORE, Form

ROOT = Path(__file__).parents[2]
MOVES = ROOT / "scheduler-config/components/moves"
CRDS = {
    "reservations.reserver.io": ROOT / "scheduler-config/core/crd.yaml",
    "reservationquotas.reserver.io": ROOT / "scheduler-config/core/crd-quota.yaml",
    "podmoves.reserver.io": MOVES / "crd.yaml",
    "podmovegroups.reserver.io": MOVES / "crd-group.yaml",
    "maintenancewindows.reserver.io": MOVES.parent / "maintenance/crd.yaml",
}
RBAC = ROOT / "scheduler-config/core/rbac-reserver.yaml"
REBALANCE = ROOT / "scheduler-config/rebalance/core/rbac.yaml"
SCHEDULER = "reserver-scheduler"  # as in the file that we ship
GRPC_SCHEDULER = "over-grpc"
PROXIED_SCHEDULER = "over-proxy"

LONGEST = (
    *(
        "pages",
        "rolls",
        "moves",
        "grpc_sets",
        "maintenance",
        "loans",
        "holds",
        "install",
        "patches",
    ),
    *("placement", "occurrences", "disaster", "rebalance", "status", "sidecars", "cli", "upgrade"),
    *(
        "standby",
        "grpc",
        "owners",
        "chart_values",
        "surges",
        "chaos",
        "kept",
        "first_version",
        "guard",
    ),
)
"""Files that take half a minute and more, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files: else one process goes on for minutes after the others."""
    place = {f"test_{name}.py": number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "run" in metafunc.fixturenames:
        metafunc.parametrize("run", range(metafunc.config.getoption("--runs")))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failure the last log lines of each running Reserver."""
    report = yield
    if report.failed:
        for process in ReserverProcess.running:
            report.sections.append((f"log of {process.url} [{call.when}]", process.log_tail(40)))
    return report


@pytest.fixture(params=FORMS, ids=lambda form: form.name)
def form(request: pytest.FixtureRequest) -> Form:
    """Each way to write a reservation."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=CONFIG_MAP_FORMS, ids=lambda form: form.name)
def configmap_form(request: pytest.FixtureRequest) -> Form:
    """Each way to write a reservation into a ConfigMap."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def api(kubeconfig: Path) -> Any:
    """The API server, as its administrator."""
    core: Any = client.CoreV1Api(config.new_client_from_config(str(kubeconfig)))
    for crd, file in CRDS.items():
        install_crd(core.api_client, crd, file)
    for store in (STORE, NAMED_STORE):
        labels = {"reserver.io/store": "true"} if store == STORE else {}
        metadata = {"name": store[1], "labels": labels}
        with suppress(ApiException):
            core.create_namespace({"metadata": {"name": store[0]}})
        with suppress(ApiException):
            core.create_namespaced_config_map(store[0], {"metadata": metadata})
    return core


def install_crd(api_client: Any, name: str, file: Path) -> None:
    """Install a CRD, and return once the API server has established it."""
    with suppress(FailToCreateError):  # Somebody's cluster has it already.
        create_from_dict(api_client, yaml.safe_load(file.read_text()))
    crds: Any = client.ApiextensionsV1Api(api_client)

    def is_established() -> bool:
        found = crds.read_custom_resource_definition_status(name)
        conditions = found.status.conditions or ()
        return any(c.type == "Established" and c.status == "True" for c in conditions)

    wait_for(is_established, "the CRD is established")


@pytest.fixture(scope="session")
def reserver_kubeconfig(
    kubeconfig: Path, api: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Reserver's own service account, with the rights that we ship and no others."""
    grant(api, *yaml.safe_load_all(RBAC.read_text()))
    namespace, _ = NAMED_STORE
    for document in yaml.safe_load_all(RBAC.read_text()):
        if document["kind"] in {"Role", "RoleBinding"}:
            document["metadata"]["namespace"] = namespace
            grant(api, document)
    path = tmp_path_factory.mktemp("reserver") / "kubeconfig"
    service_account_kubeconfig(kubeconfig, "reserver-system", "reserver", path)
    return path


def grant(api: Any, *documents: dict[str, object]) -> None:
    for document in documents:
        create_from_dict(api.api_client, document)


def account(api: Any, kubeconfig: Path, name: str, path: Path, *components: Path) -> Path:
    """Return the kubeconfig of a service account with the rights of Reserver and of components.

    The roles are named as they are shipped, for tests that judge them; core's are there.
    """
    for file in (RBAC, *components):
        for document in yaml.safe_load_all(file.read_text()):
            is_role = document["kind"].endswith("Role")
            if not is_role:
                document["metadata"]["name"] = f"{document['metadata']['name']}-{name}"
            for subject in document.get("subjects", ()):
                subject["name"] = f"{subject['name']}-{name}"
            if file != RBAC or not is_role:
                grant(api, document)
            if file == RBAC and document["kind"] == "RoleBinding":
                document["metadata"]["namespace"], _ = NAMED_STORE
                grant(api, document)
    service_account_kubeconfig(kubeconfig, "reserver-system", f"reserver-{name}", path)
    return path


@pytest.fixture(scope="session")
def rebalance_kubeconfig(
    kubeconfig: Path, api: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The service account of our manifests, with its rights and no others."""
    grant(api, *yaml.safe_load_all(REBALANCE.read_text()))
    path = tmp_path_factory.mktemp("rebalance") / "kubeconfig"
    service_account_kubeconfig(kubeconfig, "reserver-system", "reserver-rebalance", path)
    return path


@pytest.fixture(scope="session")
def reserver(
    control_plane: ControlPlane,
    reserver_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ReserverProcess]:
    """Reserver and a stock kube-scheduler, configured by the shipped file."""
    log = tmp_path_factory.mktemp("reserver-log") / "reserver.log"
    flags = ("--configmap", "/".join(NAMED_STORE), "--grpc-address", "127.0.0.1:0")
    with (
        ReserverProcess(reserver_kubeconfig, log, *flags) as process,
        scheduling(control_plane, process.port, SCHEDULER),
    ):
        yield process


@pytest.fixture(scope="module", params=StoreKind)
def served(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    reserver_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ReserverProcess]:
    """Reserver with its gRPC API, on each of the stores, and a kube-scheduler that asks it."""
    folder = tmp_path_factory.mktemp("grpc")
    flags = ("--grpc-address=127.0.0.1:0", f"--reservation-store={request.param}")
    with (
        ReserverProcess(reserver_kubeconfig, folder / "log", *flags) as process,
        scheduling(control_plane, process.port, GRPC_SCHEDULER),
    ):
        yield process


@pytest.fixture
def rpc_corner(control_plane: ControlPlane, api: Any, served: ReserverProcess) -> Iterator[Corner]:
    """A corner whose kube-scheduler asks the reserver that serves gRPC."""
    assert served.grpc_address
    corner = Corner(control_plane.kubeconfig, GRPC_SCHEDULER, api)
    corner.open()
    try:
        yield corner
    finally:
        corner.close()


class Proxied(NamedTuple):
    """A corner whose kube-scheduler asks a reserver that reaches the API server through a proxy."""

    corner: Corner
    reserver: ReserverProcess
    proxy: Proxy

    def calls(self, outcome: str) -> float:
        """Return the number of Filter calls with an outcome."""
        labels = f'{{outcome="{outcome}",verb="filter"}}'
        return self.reserver.metric(f"reserver_extender_calls_total{labels}")


@pytest.fixture
def proxied(
    control_plane: ControlPlane, reserver_kubeconfig: Path, api: Any, tmp_path: Path
) -> Iterator[Proxied]:
    """A Reserver behind a proxy that can delay the answers of the API server."""
    kubeconfig = tmp_path / "kubeconfig"
    corner = Corner(control_plane.kubeconfig, PROXIED_SCHEDULER, api)
    corner.open()
    with Proxy(reserver_kubeconfig, Mishaps(seed=0)) as proxy:
        proxy.write_kubeconfig(kubeconfig)
        with (
            ReserverProcess(kubeconfig, tmp_path / "log") as reserver,
            scheduling(control_plane, reserver.port, PROXIED_SCHEDULER),
        ):
            try:
                yield Proxied(corner, reserver, proxy)
            finally:
                corner.close()


@pytest.fixture
def corner(request: pytest.FixtureRequest, kubeconfig: Path, api: Any) -> Iterator[Corner]:
    """A corner of the cluster for one test."""
    if request.config.getoption("--kubeconfig") is None:
        request.getfixturevalue("reserver")
    corner = Corner(kubeconfig, request.config.getoption("--scheduler-name"), api)
    corner.open()
    try:
        yield corner
    finally:
        corner.close()
