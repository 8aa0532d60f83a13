"""The dashboard's queries and the alerts, asked of a real Prometheus and judged by its promtool.

Building those takes minutes, so this is a step of `make release-check`, not of CI.
"""

from __future__ import annotations

import asyncio
import json
import math
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.utils import create_from_dict

from hack.bed.bed import scheduling
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.nodes import create_nodes
from hack.dashboard import FOLDER, queries
from hack.go_tool import PROMTOOL
from hack.prometheus.scraping import scraping
from hack.reserver_process import ReserverProcess, wait_for
from hack.rounds_process import rounds
from reserver.client import Client
from tests.e2e.conftest import CRDS, ROOT, SCHEDULER
from tests.e2e.forms import OBJECTS

pytestmark = pytest.mark.timeout(1800)  # Prometheus and promtool are built once.

PATCH_CRD = ROOT / "scheduler-config/components/webhooks/crd-patch.yaml"
HOME = "reserver-system"
_ALIVE_S = 1
"""The age at which rebalancing evicts a pod of `aged`."""


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the rules as a file of Prometheus; their tests are in the same folder."""
    folder = tmp_path_factory.mktemp("rules")
    spec = yaml.safe_load((FOLDER / "rules.yaml").read_text())["spec"]
    (folder / "rules.yml").write_text(yaml.safe_dump(spec, sort_keys=False))
    shutil.copy(FOLDER / "rules_test.yaml", folder)
    return folder / "rules.yml"


@pytest.mark.parametrize("verb", ["check", "test"])
def test_promtool_takes_the_rules_and_their_tests_pass(verb: str, rules: Path) -> None:
    file = rules if verb == "check" else rules.with_name("rules_test.yaml")
    done = _promtool(verb, "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def _promtool(*words: str, said: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(PROMTOOL.build()), *words]
    return subprocess.run(command, input=said, capture_output=True, text=True, check=False)


class Plant:
    """A cluster where all happens that a panel shows, again and again.

    Attributes:
        url: of the Prometheus that scrapes it.
    """

    def __init__(self, kubeconfig: Path, reserver: ReserverProcess, url: str) -> None:
        self.url = url
        self._reserver = reserver
        self._api_client = config.new_client_from_config(str(kubeconfig))
        self._core: Any = client.CoreV1Api(self._api_client)
        self._objects: Any = client.CustomObjectsApi(self._api_client)
        self._turn = 0

    def prepare(self) -> None:
        """Create what stays."""
        apps: Any = client.AppsV1Api(self._api_client)
        for name in ("aged", "moving"):
            apps.create_namespaced_deployment("default", deployment(name))
        self._create("reservations", "held", {**SEAT, "node": "worker-1", "ttl": "1h"})
        patch = {"selector": {"matchLabels": {"app": "none"}}, "maxCount": 1}
        self._create("schedpatches", "patch", {**patch, "tolerations": [{"key": "x"}]})
        wait_for(lambda: len(self._pods("moving")) == 2, "the pods that move are bound")

    def turn(self) -> None:
        """Have everything happen once more."""
        self._turn += 1
        asyncio.run(self._call())
        self._resize()
        for pod in self._pods("moving"):
            spec = {"pod": {"name": pod.metadata.name, "uid": pod.metadata.uid}}
            with suppress(ApiException):
                self._create("podmoves", f"move-{self._turn}-{pod.metadata.name}", spec)
        refused = urllib.request.Request(f"{self._reserver.url}/healthz", headers={"Host": "evil"})
        with suppress(OSError):
            urllib.request.urlopen(refused)
        self._reserver.process.send_signal(signal.SIGSTOP)  # So the event loop is held.
        time.sleep(0.3)
        self._reserver.process.send_signal(signal.SIGCONT)

    def values(self, query: str) -> list[float]:
        """Return the present values of a query of the dashboard, without NaN."""
        text = query.replace("$job", ".+").replace("$__rate_interval", "1m")
        asked = urllib.parse.urlencode({"query": text})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{asked}") as answer:
            found = json.load(answer)["data"]["result"]
        values = [float(each["value"][1]) for each in found]
        return [value for value in values if not math.isnan(value)]

    async def _call(self) -> None:
        async with Client(self._reserver.grpc_address) as calls:
            assert [each.name async for each in calls.list()]

    def _resize(self) -> None:
        review: dict[str, Any] = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
        review |= {"request": {"uid": "u", "namespace": "default", "object": {}, "oldObject": {}}}
        context = ssl._create_unverified_context()
        request = urllib.request.Request(
            f"{self._reserver.webhook_url}/judge-resize",
            json.dumps(review).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, context=context)

    def _pods(self, app: str) -> list[Any]:
        pods = self._core.list_namespaced_pod("default", label_selector=f"app={app}").items
        return [pod for pod in pods if pod.spec.node_name and not pod.metadata.deletion_timestamp]

    def _create(self, plural: str, name: str, spec: dict[str, Any]) -> None:
        kind = {"reservations": "Reservation", "schedpatches": "SchedPatch", "podmoves": "PodMove"}
        body = {"apiVersion": "/".join(OBJECTS), "kind": kind[plural], "metadata": {"name": name}}
        self._objects.create_namespaced_custom_object(
            *OBJECTS, "default", plural, {**body, "spec": spec}
        )


SEAT = {"owners": [{"pod": {"name": "later"}}], "resources": {"cpu": "1"}}
POLICY = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "aged",
            "pluginConfig": [
                {
                    "name": "PodLifeTime",
                    "args": {
                        "maxPodLifeTimeSeconds": _ALIVE_S,
                        "labelSelector": {"matchLabels": {"app": "aged"}},
                    },
                }
            ],
            "plugins": {"deschedule": {"enabled": ["PodLifeTime"]}},
        }
    ],
}


def deployment(name: str) -> dict[str, Any]:
    """Return a Deployment of two small pods that kube-scheduler asks Reserver about."""
    labels = {"app": name}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"schedulerName": SCHEDULER, "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": labels}, "spec": {**spec, "containers": [container]}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory, rules: Path) -> Iterator[Plant]:
    folder = tmp_path_factory.mktemp("plant")
    with ControlPlane() as plane:
        create_nodes(plane.kubeconfig, 3)
        api_client = config.new_client_from_config(str(plane.kubeconfig))
        for file in (*CRDS.values(), PATCH_CRD):
            create_from_dict(api_client, yaml.safe_load(file.read_text()))
        core: Any = client.CoreV1Api(api_client)
        core.create_namespace({"metadata": {"name": HOME}})
        (folder / "policy.yaml").write_text(yaml.safe_dump(POLICY))
        flags = ["--grpc-address=127.0.0.1:0", "--webhook-address=127.0.0.1:0", "--pod-moves"]
        flags += ["--maintenance-windows", "--tenant-ceiling-cluster=80%"]
        command = [sys.executable, "-m", "reserver", "rebalance", "run", "--without-holds"]
        command += ["--kubeconfig", str(plane.kubeconfig)]
        command += ["--policy-config-file", str(folder / "policy.yaml")]
        with (
            ReserverProcess(plane.kubeconfig, folder / "log", *flags) as reserver,
            rounds(*command, interval="2s") as health,
            scheduling(plane, reserver.port, SCHEDULER),
        ):
            targets = (f"127.0.0.1:{reserver.port}", health.removeprefix("http://"))
            with scraping(folder, *targets, rules=rules) as url:
                plant = Plant(plane.kubeconfig, reserver, url)
                plant.prepare()
                yield plant


def test_each_query_of_the_dashboard_returns_numbers(plant: Plant) -> None:
    left = queries()

    def all_have() -> bool:
        plant.turn()
        for name in [name for name, query in left.items() if plant.values(query)]:
            del left[name]
        return not left

    with suppress(TimeoutError):
        wait_for(all_have, "all queries return numbers")
    assert not left


def test_the_alerts_of_a_healthy_cluster_are_not_critical(plant: Plant) -> None:
    firing = 'ALERTS{severity="critical"}'
    assert plant.values("reserver_ready") == [1]
    assert plant.values(firing) == []
    assert plant.values('count({__name__="ALERTS_FOR_STATE"}) or vector(0)')


def test_promtool_takes_what_is_exposed(plant: Plant) -> None:
    text = plant._reserver.get("/metrics")[1]
    done = _promtool("check", "metrics", said=text)
    ours = [line for line in done.stderr.splitlines() if not line.startswith("descheduler_")]
    assert not ours
