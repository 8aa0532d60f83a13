"""Each value of the chart arrives in a manifest, or is refused with a remedy."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.chart import SCHEMA, leaves
from tests.e2e.apart.chart_values import ARRIVALS, Arrival
from tests.e2e.apart.rendering import TEMPLATE, Key, render

pytestmark = pytest.mark.controlplane  # for its kubectl


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
    """Return whether the rendered objects have the value."""
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
    """Return the possible first steps of a path, the longest first: names may have dots."""
    parts = path.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


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
