"""The nodes on which a pod fits, by kind of constraint, in process."""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from hack.bench.documents import NAMESPACE, encode, new_pod, node_document, node_name
from hack.bench.report import milliseconds, progress, table, times
from hack.bench.rounds import P99, side_by_side
from hack.bench.scale import Scale
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.cluster.storage import Volume, VolumeClaim
from reserver.k8s.objects.nodes import NodeObject
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.k8s.objects.selectors import NodeSelector, node_terms
from reserver.scheduling.fit import fit, fits

_ZONE, _HOST, _RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack"
_RACK_SIZE = 50
_PODS_OF_A_WORKLOAD = 30
_CALLS = 20
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_ALL = "all of these at once"


def measure(scale: Scale) -> Iterator[str]:
    """Yield the table of `fits`."""
    progress("fits: building the cluster")
    snapshot = _snapshot(scale.nodes, scale.started_pods)
    pods = {name: _pod(spec) for name, spec in _kinds().items()}
    for name, pod in pods.items():
        if not fits(pod, snapshot).any():
            raise RuntimeError(name)
    progress("fits")
    calls: dict[str, Any] = {name: partial(fits, pod, snapshot) for name, pod in pods.items()}
    one = f"`fit` on one node, {_ALL}"
    calls[one] = partial(fit, pods[_ALL], node_name(0), snapshot)
    taken = side_by_side(calls, rounds=scale.rounds, calls=_CALLS)
    first = next(iter(taken.values()))
    rows = [
        (name, milliseconds(t.seconds()), milliseconds(t.seconds(P99)), times(t.ratio_to(first)))
        for name, t in taken.items()
    ]
    workloads = scale.started_pods // _PODS_OF_A_WORKLOAD
    title = (
        f"Where a pod fits: {scale.nodes:,} nodes, {scale.started_pods:,} pods of {workloads:,} "
        "workloads"
    )
    yield table(title, ("what the pod demands", "p50", "p99", "ratio"), rows)


def _snapshot(nodes: int, pods: int) -> Snapshot:
    """Return nodes in three zones, one in ten tainted, and workloads spread over them.

    A third of the workloads have anti-affinity by node, a third use a host port.
    """
    snapshot = Snapshot()
    for index in range(nodes):
        document = node_document(index)
        own = {_ZONE: f"zone-{index % 3}", _HOST: node_name(index), _RACK: str(index // _RACK_SIZE)}
        document["metadata"]["labels"] |= own
        if index % 10 == 0:
            taint = {"key": "dedicated", "value": str(index % 7), "effect": "NoSchedule"}
            document["spec"]["taints"] = [taint]
        snapshot.set_node(decode(NodeObject, encode(document)).value())
    workloads = max(pods // _PODS_OF_A_WORKLOAD, 1)
    for index in range(pods):
        replica, workload = divmod(index, workloads)
        node = node_name((7 * workload + 167 * replica) % nodes)
        snapshot.count(_resident(index, workload), node)
    snapshot.namespaces |= {f"team-{n}": {"stage": "dev"} for n in range(500)}
    snapshot.namespaces[NAMESPACE] = {"stage": "production"}
    terms = [{"matchExpressions": [_expression(_ZONE, "In", "zone-1")]}]
    selector = decode(NodeSelector, encode({"nodeSelectorTerms": terms}))
    snapshot.storage.volumes["pv"] = Volume(name="pv", node_terms=node_terms(selector))
    claim = VolumeClaim(name=PodName(NAMESPACE, "data"), volume="pv", is_bound=True)
    snapshot.storage.claims[claim.name] = claim
    return snapshot


def _resident(index: int, workload: int) -> Pod:
    like = _template(workload)
    return Pod(
        name=PodName(NAMESPACE, f"w{workload}-{index}"),
        uid=f"resident-{index}",
        requests=like.requests,
        labels=like.labels,
        constraints=like.constraints,
    )


@cache
def _template(workload: int) -> Pod:
    labels = _labels(f"w{workload}")
    spec: dict[str, Any] = {}
    if workload % 3 == 0:
        term = {"topologyKey": _HOST, "labelSelector": {"matchLabels": {"app": f"w{workload}"}}}
        spec["affinity"] = {"podAntiAffinity": {_REQUIRED: [term]}}
    if workload % 3 == 1:
        spec["containers"] = [_taking_port(20_000 + workload % 1000)]
    return _decoded(labels, spec, {"cpu": "100m"})


def _kinds() -> dict[str, Mapping[str, Any]]:
    """Return the constraints of pods, in the form of a spec; their own labels are a workload's."""
    own = {"labelSelector": {"matchLabels": {"app": "w3"}}}
    terms = [
        {"matchExpressions": [_expression(_ZONE, "In", "zone-1", "zone-2")]},
        {"matchExpressions": [_expression(_RACK, "Gt", "5"), _expression("gpu", "DoesNotExist")]},
    ]
    node_affinity = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}
    zone, host = {"topologyKey": _ZONE, **own}, {"topologyKey": _HOST, **own}
    anywhere = {"namespaceSelector": {"matchLabels": {"stage": "production"}}}
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    single: dict[str, Mapping[str, Any]] = {
        "room, tolerated taints, nothing else": {},
        "node selector": {"nodeSelector": {_ZONE: "zone-1"}},
        "node affinity, two terms": {"affinity": node_affinity},
        "pod affinity by zone": {"affinity": {"podAffinity": {_REQUIRED: [zone]}}},
        "pod anti-affinity by node": {"affinity": {"podAntiAffinity": {_REQUIRED: [host]}}},
        "the same, with a namespace selector": {
            "affinity": {"podAntiAffinity": {_REQUIRED: [host | anywhere]}}
        },
        "spread over zones": {"topologySpreadConstraints": [_spread(_ZONE, own)]},
        "spread over nodes": {"topologySpreadConstraints": [_spread(_HOST, own)]},
        "host port": {"containers": [_taking_port(20_001)]},
        "bound volume": {"volumes": [claim]},
    }
    affinity = node_affinity | {
        "podAffinity": {_REQUIRED: [zone]},
        "podAntiAffinity": {_REQUIRED: [host]},
    }
    every: dict[str, Any] = {"affinity": affinity}
    every["topologySpreadConstraints"] = [_spread(_ZONE, own), _spread(_HOST, own)]
    for spec in single.values():
        every |= {key: value for key, value in spec.items() if key not in every}
    return single | {_ALL: every}


def _expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def _spread(key: str, own: Mapping[str, Any]) -> dict[str, Any]:
    return {"maxSkew": 5, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **own}


def _taking_port(port: int) -> dict[str, Any]:
    return {"name": "c", "ports": [{"containerPort": port, "hostPort": port}]}


def _labels(app: str) -> dict[str, str]:
    return {"app": app, "app.kubernetes.io/part-of": "shop", "pod-template-hash": "5d8f7c9b9d"}


def _pod(spec: Mapping[str, Any]) -> Pod:
    return _decoded(_labels("w3"), spec, None)


def _decoded(
    labels: Mapping[str, str], spec: Mapping[str, Any], requests: Mapping[str, str] | None
) -> Pod:
    document = new_pod("asking")
    document["metadata"]["labels"] = labels
    document["spec"] |= spec
    if requests is not None:
        document["spec"]["containers"][0]["resources"] = {"requests": requests}
    return decode(PodObject, encode(document)).value()
