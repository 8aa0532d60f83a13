"""Random pods: running pods, and pods to judge."""

from __future__ import annotations

from collections.abc import Callable

from hack.differential.draw import (
    EFFECTS,
    HOSTNAME,
    NAMESPACE_LABELS,
    NAMESPACES,
    NODE_LABELS,
    POD_LABELS,
    TAINT_KEYS,
    TAINT_VALUES,
    TOPOLOGY_KEYS,
    Json,
    Random,
    expression,
    label_selector,
    some,
    some_of,
)

_NODE_OPERATORS = ("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def bound(draw: Random, name: str, node: str, claims: list[str]) -> Json:
    """Return a pod that runs on a node, whether it would fit there or not."""
    pod = _pod(draw, name)
    spec = pod["spec"]
    spec["nodeName"] = node
    if draw.random() < 0.35:
        spec["affinity"] = {"podAntiAffinity": {_REQUIRED: some(draw, 2, _pod_term)}}
    if draw.random() < 0.2:
        _add_ports(draw, spec)
    if claims and draw.random() < 0.15:
        _add_claim(draw, pod, claims)
    return pod


def give_up_ports(pod: Json, taken: set[tuple[str, ...]]) -> None:
    """Takes a port of its node from a pod if it is taken already; else adds it to these.

    No kubelet runs two pods that have the same. kube-scheduler knows no better when one of them
    ends than that the port is free (`HostPortInfo.Remove` in kube-scheduler/framework/types.go).
    """
    spec = pod["spec"]
    for container in spec["containers"] + spec.get("initContainers", []):
        for entry in container.get("ports", ()):
            of_node = entry.get("hostIP", "0.0.0.0"), entry.get("protocol", "TCP")  # noqa: S104
            port = (spec["nodeName"], *of_node, str(entry["hostPort"]))
            if port in taken:
                del container["ports"]
            taken.add(port)


def pending(draw: Random, name: str, nodes: list[str], claims: list[str]) -> Json:
    """Return a pod that is to be placed, with up to four kinds of constraints."""
    pod = _pod(draw, name)
    spec = pod["spec"]
    spec["schedulerName"] = "differential"
    kinds: dict[str, Callable[[], object]] = {
        "tolerations": lambda: _add_tolerations(draw, spec),
        "selector": lambda: spec.update(nodeSelector=some_of(draw, NODE_LABELS, 0.2)),
        "affinity": lambda: _add(spec, "nodeAffinity", {_REQUIRED: _node_selector(draw, nodes)}),
        "near": lambda: _add(spec, "podAffinity", {_REQUIRED: some(draw, 2, _pod_term)}),
        "apart": lambda: _add(spec, "podAntiAffinity", {_REQUIRED: some(draw, 2, _pod_term)}),
        "spread": lambda: spec.update(topologySpreadConstraints=_spread(draw)),
        "ports": lambda: _add_ports(draw, spec),
        "volumes": lambda: _add_claim(draw, pod, claims),
        "preferences": lambda: _add_preferences(draw, spec),
    }
    chosen = draw.sample(list(kinds), draw.choice((0, 1, 1, 1, 2, 2, 3, 4)))
    if draw.random() < 0.5:  # Or taints would hide what all others say.
        chosen.append("tolerations")
    for kind in dict.fromkeys(chosen):
        kinds[kind]()
    return pod


def _pod(draw: Random, name: str) -> Json:
    containers = [_container(draw, "main")]
    if draw.random() < 0.3:
        containers.append(_container(draw, "second"))
    spec: Json = {"containers": containers, "terminationGracePeriodSeconds": 3600}
    if draw.random() < 0.25:
        first = _container(draw, "init")
        if draw.random() < 0.5:
            first["restartPolicy"] = "Always"
        spec["initContainers"] = [first]
    if draw.random() < 0.1:
        spec["resources"] = {"requests": {"cpu": "3", "memory": "6Gi"}}
    metadata = {
        "name": name,
        "namespace": draw.choice(NAMESPACES),
        "labels": some_of(draw, POD_LABELS),
    }
    return {"metadata": metadata, "spec": spec}


def _container(draw: Random, name: str) -> Json:
    requests = {}
    if draw.random() < 0.5:
        requests["cpu"] = draw.choice(("0", "100m", "400m", "1"))
    if draw.random() < 0.4:
        requests["memory"] = draw.choice(("64Mi", "900Mi", "2Gi"))
    if draw.random() < 0.1:
        requests["ephemeral-storage"] = draw.choice(("100Mi", "3Gi"))
    if draw.random() < 0.06:
        requests["example.com/gpu"] = "1"
    if draw.random() < 0.05:
        requests |= {"hugepages-2Mi": "32Mi", "memory": "64Mi"}
    limited = {key: value for key, value in requests.items() if "/" in key or "huge" in key}
    return {
        "name": name,
        "image": "none",
        "resources": {"requests": requests, "limits": limited},
    }


def _add(spec: Json, kind: str, affinity: Json) -> None:
    spec.setdefault("affinity", {}).setdefault(kind, {}).update(affinity)


def _add_tolerations(draw: Random, spec: Json) -> None:
    spec["tolerations"] = some(draw, 3, _toleration)


def _toleration(draw: Random) -> Json:
    if draw.random() < 0.25:
        return {"operator": "Exists"}
    keys = (*TAINT_KEYS, *(f"node.kubernetes.io/{t}" for t in ("unschedulable", "not-ready")))
    toleration: Json = {"key": draw.choice(keys)}
    if draw.random() < 0.5:
        toleration["operator"] = "Exists"
    else:
        toleration["value"] = draw.choice(TAINT_VALUES)
        if draw.random() < 0.5:
            toleration["operator"] = "Equal"
    if draw.random() < 0.5:
        toleration["effect"] = draw.choice(EFFECTS)
    return toleration


def _node_selector(draw: Random, nodes: list[str]) -> Json:
    return {"nodeSelectorTerms": some(draw, 2, lambda d: _node_term(d, nodes))}


def _node_term(draw: Random, nodes: list[str]) -> Json:
    term: Json = {}
    if draw.random() < 0.85:
        term["matchExpressions"] = some(
            draw, 2, lambda d: expression(d, NODE_LABELS, _NODE_OPERATORS)
        )
    if draw.random() < 0.2 or not term:
        operator = draw.choice(("In", "NotIn"))
        values = [draw.choice([*nodes, "nowhere"])]
        term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": values}]
    return term


def _pod_term(draw: Random) -> Json:
    term: Json = {"topologyKey": draw.choice(TOPOLOGY_KEYS)}
    selector = label_selector(draw, POD_LABELS)
    if selector is not None:
        term["labelSelector"] = selector
        used = {*selector.get("matchLabels", {})} | {
            e["key"] for e in selector.get("matchExpressions", ())
        }
        free = sorted(POD_LABELS.keys() - used)
        if free and draw.random() < 0.25:
            term[draw.choice(("matchLabelKeys", "mismatchLabelKeys"))] = [draw.choice(free)]
    if draw.random() < 0.4:
        term["namespaces"] = [draw.choice((*NAMESPACES, "unknown"))]
    if draw.random() < 0.3:
        term["namespaceSelector"] = label_selector(draw, NAMESPACE_LABELS)
    return term


def _spread(draw: Random) -> list[Json]:
    keys = draw.sample(TOPOLOGY_KEYS, draw.choice((1, 1, 2)))
    return [_spread_constraint(draw, key) for key in keys]


def _spread_constraint(draw: Random, key: str) -> Json:
    constraint: Json = {
        "maxSkew": draw.choice((1, 1, 2, 3)),
        "topologyKey": key,
        "whenUnsatisfiable": draw.choice(
            ("DoNotSchedule", "DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")
        ),
    }
    selector = label_selector(draw, POD_LABELS)
    if selector is not None:
        constraint["labelSelector"] = selector
        used = {*selector.get("matchLabels", {})} | {
            e["key"] for e in selector.get("matchExpressions", ())
        }
        free = sorted(POD_LABELS.keys() - used)
        if free and draw.random() < 0.3:
            constraint["matchLabelKeys"] = [draw.choice(free)]
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and draw.random() < 0.3:
        constraint["minDomains"] = draw.choice((1, 2, 4, 9))
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draw.random() < 0.4:
            constraint[policy] = draw.choice(("Honor", "Ignore"))
    return constraint


def _add_ports(draw: Random, spec: Json) -> None:
    port = draw.choice((8080, 9090))
    entry: Json = {"containerPort": port, "hostPort": port}
    if draw.random() < 0.4:
        entry["hostIP"] = draw.choice(("10.0.0.1", "10.0.0.2", "0.0.0.0"))  # noqa: S104 (drawn)
    if draw.random() < 0.3:
        entry["protocol"] = draw.choice(("UDP", "TCP"))
    draw.choice(spec["containers"] + spec.get("initContainers", []))["ports"] = [entry]


def _add_claim(draw: Random, pod: Json, claims: list[str]) -> None:
    """Have a pod use a claim, or one made for it: nobody makes it, so that it is not there."""
    volume: Json = {"name": "data"}
    if draw.random() < 0.08:
        resources = {"requests": {"storage": "1Gi"}}
        template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}
        volume["ephemeral"] = {"volumeClaimTemplate": template}
    else:
        # Those that come first are bound, and say where their pods can go.
        claim = draw.choice(claims[:8] if draw.random() < 0.7 else [*claims, "absent"])
        volume["persistentVolumeClaim"] = {"claimName": claim}
    pod["spec"]["volumes"] = [volume]


def _add_preferences(draw: Random, spec: Json) -> None:
    """Add what must change nothing: kube-scheduler scores it."""
    weighted = {"weight": draw.randint(1, 100)}
    term = {"matchExpressions": [expression(draw, NODE_LABELS, _NODE_OPERATORS)]}
    _add(spec, "nodeAffinity", {_PREFERRED: [{**weighted, "preference": term}]})
    near = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    _add(spec, "podAntiAffinity", {_PREFERRED: [{**weighted, "podAffinityTerm": near}]})
