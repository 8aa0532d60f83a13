"""What costs Reserver most of what somebody with `edit` in one namespace may write.

Each entry is a class of findings, drawn anew at each turn: sizes just within what a real API server
lets through, the extremes of each number, names that nobody has used before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]

RESERVATION, POD, CONFIGMAP, WHAT_IF = "reservations", "pods", "configmaps", "what-if"
TEMPLATE, REQUEST = "podtemplates", "provisioningrequests"

APP = "hostile"
"""What the tenant's pods have as label `app`, and what its reservations are for."""

STORE = "hostile"
"""The ConfigMap of the tenant that Reserver is told to read, by name."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_STANDING = 4
"""So many objects of one kind stand at the same time; then the oldest is written again."""

_DEEPEST = 900  # json.dumps goes no deeper

_EXTREMES: tuple[object, ...] = (
    *(2**63, -(2**63), 2**63 - 1, 2**31, 2**31 - 1, 2**64, 10**30, 0, -1, 1),
    *(1e19, 0.5, "9" * 60, "1", None, [], {}),
)
_AMOUNTS = ("9007199254740", "8Pi", "8Ei", "9223372036854775807", "1e18", "1n", "999999999999Gi")


@dataclass(frozen=True)
class Target:
    """Whom it may harm.

    Attributes:
        nodes: names of the cluster's nodes.
        scheduler: the scheduler's name that waiting pods ask for.
        labels: of the nodes where it may reserve and run; all without any.
        share: how large to be, at most 1: what is refused as too large is tried smaller.
    """

    nodes: Sequence[str]
    scheduler: str
    labels: Document = field(default_factory=dict)
    share: float = 1.0

    def node(self, turn: int) -> str:
        """Return one of the nodes, another one at each turn."""
        return self.nodes[turn * 7 % len(self.nodes)]

    def many(self, most: int) -> int:
        """Return how many of something to write."""
        return max(1, int(most * self.share))


@dataclass(frozen=True)
class Costly:
    """One write, or one call.

    Attributes:
        kind: RESERVATION, POD, TEMPLATE, REQUEST, CONFIGMAP or WHAT_IF.
        name: of the object.
        document: the spec of a reservation or request, the pod without its name, the template of a
            PodTemplate, the data of a ConfigMap, what is asked.
    """

    kind: str
    name: str
    document: Document


Entry = Callable[[Target, int], Costly]

CATALOGUE: dict[str, Entry] = {}
"""By name, what makes each at a turn."""


def reservation(make: Callable[[Target, int], Document]) -> Entry:
    """Enter what makes the spec of a Reservation."""
    return _enter(make, RESERVATION)


def pod(make: Callable[[Target, int], Document]) -> Entry:
    """Enter what makes a pod."""
    return _enter(make, POD)


def template(make: Callable[[Target, int], Document]) -> Entry:
    """Enter what makes the template of a PodTemplate."""
    return _enter(make, TEMPLATE)


def request(make: Callable[[Target, int], Document]) -> Entry:
    """Enter what makes the spec of a ProvisioningRequest of Reserver's class."""
    return _enter(make, REQUEST)


def configmap(make: Callable[[Target, int], Document]) -> Entry:
    """Enter what makes the data of a ConfigMap that Reserver reads."""
    return _enter(make, CONFIGMAP)


def _enter(make: Callable[[Target, int], Document], kind: str) -> Entry:
    name = make.__name__.replace("_", "-")

    def entry(target: Target, turn: int) -> Costly:
        place = STORE if kind == CONFIGMAP else f"{name}-{turn % _STANDING}"
        return Costly(kind, place, make(target, turn))

    CATALOGUE[name] = entry
    return entry


# Reservations


@reservation
def extreme_skew(target: Target, turn: int) -> Document:
    """Spreads with the extremes of each number (security 1)."""
    constraint = {
        "maxSkew": 1 if turn % 2 else _EXTREMES[turn // 2 % len(_EXTREMES)],
        "minDomains": _EXTREMES[turn // 2 % len(_EXTREMES)] if turn % 2 else 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": APP}},
    }
    return _placed(target, slots=3, topologySpreadConstraints=[constraint])


@reservation
def extreme_amounts(target: Target, turn: int) -> Document:
    """Holds more than any integer counts (core 1, 2)."""
    amount = _AMOUNTS[turn % len(_AMOUNTS)]
    spec = _spec(turn, {"cpu": amount, "memory": amount}, slots=(1, 130, 1000, 100_000)[turn % 4])
    spec |= {"node": target.node(turn), "preemptible": True, "priority": -(2**31)}
    return spec if turn % 2 else {k: v for k, v in spec.items() if k != "priority"}


@reservation
def whole_node(target: Target, turn: int) -> Document:
    """Holds all of a node for ever (security 3)."""
    spec = _spec(turn, {"cpu": "1000"}, slots=100_000)
    return spec | {"node": target.node(turn), "ttl": "0", "policy": "Require"}


@reservation
def many_terms(target: Target, turn: int) -> Document:
    """Keeps away from thousands of kinds of pods (security 2): 1.2 MB."""
    terms = [_term({"app": f"x{number}"}) for number in range(target.many(9_000 + turn % 2))]
    return _placed(target, slots=20, affinity={"podAntiAffinity": {_REQUIRED: terms}})


@reservation
def many_owners(target: Target, turn: int) -> Document:
    """Is for ten thousand kinds of pods, on as many nodes as there are (core 11, security 2)."""
    owners = [
        {"selector": {"matchLabels": {f"key-{number % 700}": f"v{turn}-{number}"}}}
        for number in range(target.many(10_000))
    ]
    return _placed(target, slots=5_000, strategy="spread") | {"owners": owners}


@reservation
def many_keys(target: Target, turn: int) -> Document:
    """Asks all pods for a thousand labels that nobody has (core 10)."""
    spec = _placed(
        target, slots=1, affinity={"podAffinity": {_REQUIRED: [_keys(target.many(1_000), turn)]}}
    )
    return spec | {"resources": {"cpu": "100" if turn % 2 else "1m"}}


@reservation
def wide_spread(target: Target, turn: int) -> Document:
    """Holds a little everywhere, for pods that are there (core 13)."""
    spec = _placed(target, slots=5_000 + turn, strategy="spread")
    return spec | {"owners": [{"selector": {"matchLabels": {"app": APP}}}], "reusable": True}


@reservation
def many_resources(target: Target, turn: int) -> Document:
    """Holds resources that nobody has ever heard of (core 18)."""
    amounts = {f"hostile.example/r{turn}-{number}": 1 for number in range(target.many(64))}
    return _spec(turn, amounts) | {"node": target.node(turn)}


@reservation
def many_constraints(target: Target, turn: int) -> Document:
    """Spreads over everything that can be called a topology, and over what cannot."""
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": ("kubernetes.io/hostname", f"hostile.example/zone-{number}")[number % 2],
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": _keys(target.many(16), number)["labelSelector"],
        }
        for number in range(target.many(64))
    ]
    return _placed(target, slots=200 + turn % 3, topologySpreadConstraints=constraints)


@reservation
def many_node_terms(target: Target, turn: int) -> Document:
    """Names all nodes in all ways: 1 MB."""
    values = [
        *target.nodes[: target.many(len(target.nodes))],
        *(f"node-{turn}-{number}" for number in range(target.many(1_000))),
    ]
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In"}]}
    whole = len(json.dumps(values))
    term["matchExpressions"][0]["values"] = values  # type: ignore[assignment]
    terms = [term for _ in range(target.many(1_000_000 // whole))]
    node_affinity = {_REQUIRED: {"nodeSelectorTerms": terms}}
    return _placed(target, slots=20, affinity={"nodeAffinity": node_affinity})


@reservation
def deep(target: Target, turn: int) -> Document:
    """Nests what the schema lets through."""
    value: Any = turn
    for _depth in range(_DEEPEST):
        value = {"a": value}
    return _placed(target, slots=1, affinity={"podAffinity": value})


@reservation
def quick_edit(target: Target, turn: int) -> Document:
    """Says something else each time (core 17)."""
    expires = f"20{40 + turn % 50}-01-01T00:00:{turn % 60:02}Z"
    return _spec(turn, {"cpu": "1m"}) | {"node": target.node(turn // 50), "expiresAt": expires}


@reservation
def strange_text(target: Target, turn: int) -> Document:
    """Puts into each text what terminals and logs choke on (security 13)."""
    text = ("\x1b[2J", "\u202e", "\x9b31m", "\ud7ff" * 60, "../" * 80, "%s%n{}")[turn % 6]
    owner = {"selector": {"matchLabels": {text: text}}}
    return _placed(target, slots=1, nodeSelector=target.labels | {text: text}) | {"owners": [owner]}


def small(target: Target, turn: int) -> Costly:
    """Make one more small reservation, so that there are thousands (security 2, 3)."""
    spec = _spec(turn, {"cpu": "1m"}) | {"node": target.node(turn), "ttl": "0"}
    return Costly(RESERVATION, f"small-{turn % 5_000}", spec)


CATALOGUE["small"] = small


# Pods


@pod
def pod_keys(target: Target, turn: int) -> Document:
    """Asks all pods for a thousand labels that nobody has (core 10): 44 KiB."""
    affinity = {"podAffinity": {_REQUIRED: [_keys(target.many(1_000), turn)]}}
    return _pod(target, affinity=affinity)


@pod
def pod_terms(target: Target, turn: int) -> Document:
    """Keeps away from thousands of kinds of pods."""
    terms = [_term({"app": f"x{turn}-{number}"}) for number in range(target.many(4_000))]
    return _pod(target, affinity={"podAntiAffinity": {_REQUIRED: terms}})


@pod
def pod_ports(target: Target, turn: int) -> Document:
    """Takes ten thousand ports of its node (core 16)."""
    ports = [
        {"containerPort": 1 + number, "hostPort": 1 + number, "hostIP": f"10.{turn % 200}.0.1"}
        for number in range(target.many(10_000))
    ]
    return _pod(target, ports=ports)


@pod
def pod_resources(target: Target, turn: int) -> Document:
    """Is bound by its creator, and requests what nobody has ever heard of (core 18)."""
    amounts = {f"hostile.example/p{turn}-{number}": "1" for number in range(target.many(2_000))}
    return _pod(target, nodeName=target.node(turn), limits=amounts)


@pod
def pod_forged(target: Target, turn: int) -> Document:
    """Says that it claimed others' reservations, where it is not (security 12)."""
    claims = [f"shop/hold-{number}@1" for number in range(target.many(turn % 5_000))]
    claims += [f"{APP}/wide-spread-{number}@1" for number in range(_STANDING)]
    body = _pod(target, nodeName=("no-such-node", target.node(turn))[turn % 2])
    body["metadata"]["annotations"] = {"reserver.io/claims": json.dumps(claims)}
    body["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"web-{number}", "uid": "u"}
        | {"controller": number == 0}
        for number in range(target.many(1_000))
    ]
    return body


@pod
def pod_labels(target: Target, turn: int) -> Document:
    """Has a thousand labels, each new (core 10)."""
    body = _pod(target, nodeName=target.node(turn))
    body["metadata"]["labels"] |= {
        f"hostile.example/l{turn}-{i}": str(i) for i in range(target.many(1_000))
    }
    return body


@pod
def pod_volumes(target: Target, turn: int) -> Document:
    """Waits for a thousand claims that nobody makes."""
    volumes = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": f"c{turn}-{number}"}}
        for number in range(target.many(1_000))
    ]
    return _pod(target, volumes=volumes)


@pod
def pod_spread(target: Target, turn: int) -> Document:
    """Spreads among pods that nobody has, by everything that can be called a topology."""
    constraints = [
        {
            "maxSkew": 2**31 - 1 if number % 2 else 1,
            "topologyKey": f"hostile.example/zone-{number}",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": _keys(target.many(40), number + turn)["labelSelector"],
        }
        for number in range(target.many(200))
    ]
    return _pod(target, topologySpreadConstraints=constraints)


def waiting(target: Target, turn: int) -> Costly:
    """Make one more pod that waits: what wakes pods has to look at all of them (core 14, 15)."""
    return Costly(POD, f"waiting-{turn % 500}", _pod(target, cpu="20"))


CATALOGUE["waiting"] = waiting


def heavy(target: Target, turn: int) -> Costly:
    """Make one more pod on one node that requests what nobody has ever heard of, 0.5 MB."""
    amounts = {f"hostile.example/h{turn}-{n}": "1" for n in range(target.many(9_000))}
    return Costly(POD, f"heavy-{turn % 300}", _pod(target, nodeName=target.node(0), limits=amounts))


CATALOGUE["heavy"] = heavy


def claiming(target: Target, turn: int) -> Costly:
    """Make one more pod with as many claims as an annotation holds: 256 KiB."""
    body = _pod(target, nodeName=target.node(turn))
    claims = [f"{turn}-{number}-{'x' * 1_000}" for number in range(target.many(250))]
    body["metadata"]["annotations"] = {"reserver.io/claims": json.dumps(claims)}
    return Costly(POD, f"claiming-{turn % 300}", body)


CATALOGUE["claiming"] = claiming


# ProvisioningRequests, and the PodTemplates that they name


@template
def small_template(target: Target, turn: int) -> Document:
    """Asks for next to nothing, or for what no node has."""
    return _template(target, cpu="1m" if turn % 2 else "100")


@template
def neighbours_template(target: Target, turn: int) -> Document:
    """Minds its own like and all others, in as many ways as Reserver reads."""
    terms = [
        {"topologyKey": key, "labelSelector": {"matchExpressions": [absent]}}
        for number in range(target.many(7))
        for key in ("kubernetes.io/hostname", f"hostile.example/zone-{number}")
        for absent in [{"key": f"k{turn}-{number}", "operator": "DoesNotExist"}]
    ]
    if turn % 2:
        spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        return _template(target, topologySpreadConstraints=[{**spread, **each} for each in terms])
    odd = [_term({"app": f"x{turn}-{number}"}) for number in range(target.many(16))]
    return _template(target, affinity={"podAntiAffinity": {_REQUIRED: odd}})


@template
def large_template(target: Target, turn: int) -> Document:
    """Says more than is read: 1 MB."""
    terms = [_term({"app": f"x{turn}-{number}"}) for number in range(target.many(7_000))]
    return _template(target, affinity={"podAntiAffinity": {_REQUIRED: terms}})


@template
def resources_template(target: Target, turn: int) -> Document:
    """Asks for what nobody has ever heard of, and for more than any integer counts."""
    amounts = {f"hostile.example/t{turn}-{n}": "1" for n in range(target.many(2_000))}
    return _template(target, cpu=_AMOUNTS[turn % len(_AMOUNTS)], limits=amounts)


@request
def neighbours_request(_: Target, turn: int) -> Document:
    """Has as many slots that mind each other as there may be: 100 (core 10)."""
    return _request(*[(f"neighbours-template-{n % _STANDING}", 20) for n in range(5)], turn=turn)


@request
def wide_request(_: Target, turn: int) -> Document:
    """Has as many podSets of as many pods as there may be."""
    return _request(*[("small-template-1", 1_000)] * 32, turn=turn)


@request
def refused_request(_: Target, turn: int) -> Document:
    """Names templates that are too much, one after the other, and none at all."""
    names = (*_REFUSED_TEMPLATES, "no-such-template")
    return _request((names[turn % len(names)], 1), turn=turn)


@request
def extreme_request(_: Target, turn: int) -> Document:
    """Counts and waits for extremes."""
    written = _request(("small-template-0", 1), turn=turn)
    written["podSets"][0]["count"] = _EXTREMES[turn % len(_EXTREMES)]
    lasts = ("1e300h", "-1s", "9" * 250 + "h", "1ns", "", "720h1s", "\x1b[2J", "0x1p99s")
    written["parameters"] = {"validFor": lasts[turn % len(lasts)]}
    return written if turn % 2 else {**written, "parameters": {f"p{n}": "x" for n in range(99)}}


def waiting_request(_: Target, turn: int) -> Costly:
    """Make one more request that waits for room which there will never be."""
    asked = _request(("small-template-0", 1), turn=turn)
    return Costly(REQUEST, f"waiting-request-{turn % 900}", asked)


CATALOGUE["waiting-request"] = waiting_request


# ConfigMaps that Reserver is told to read


@configmap
def invalid_entries(target: Target, turn: int) -> Document:
    """Says nothing, thousands of times (core 12)."""
    return {f"k{number:05}": "{}" for number in range(target.many(5_000 + turn % 2))}


@configmap
def deep_entries(_: Target, turn: int) -> Document:
    """Nests in JSON and in YAML."""
    shapes = ("[" * 400_000, '{"a":' * 80_000, "- " * 30_000, "a: &a [x]\n" + "b: [*a, *a]\n" * 9)
    return {f"deep-{number}": text for number, text in enumerate(shapes)} | {"turn": str(turn)}


@configmap
def list_entries(target: Target, turn: int) -> Document:
    """Lists thousands of pods on some nodes."""
    items = [
        {"pod": f"w-{number}", "namespace": APP, "cpu": 1, "mem": 1, "expire": 4_000_000_000 + turn}
        for number in range(target.many(500))
    ]
    return {target.node(turn + number): json.dumps(items) for number in range(15)}


# Calls


def what_if(target: Target, turn: int) -> Costly:
    """Ask what if, at length (security 2): 3 MB."""
    terms = [_term({"app": f"x{number}"}) for number in range(target.many(3_000 + turn % 2))]
    spec = _placed(target, slots=100, affinity={"podAntiAffinity": {_REQUIRED: terms}})
    spec |= {"owners": [{"pod": {"name": "nobody", "namespace": APP}}]}
    return Costly(WHAT_IF, "what-if", {"reservations": [spec] * 8})


CATALOGUE["what-if"] = what_if


_REFUSED_TEMPLATES = tuple(
    f"{name}-{number}" for name in ("large-template", "resources-template") for number in range(2)
)


def _template(target: Target, cpu: str = "1m", **spec: Any) -> Document:  # noqa: ANN401
    pod = _pod(target, cpu=cpu, **spec)
    return {**pod, "spec": {**pod["spec"], "restartPolicy": "Always"}}


def _request(*pod_sets: tuple[str, int], turn: int) -> Document:
    sets = [{"podTemplateRef": {"name": name}, "count": count} for name, count in pod_sets]
    parameters = {
        "validFor": ("10s", "1h")[turn % 2],
        "noRetry": ("false", "false", "true")[turn % 3],
    }
    kind = {"provisioningClassName": "hold.reserver.io"}
    return {**kind, "podSets": sets, "parameters": parameters}


def _spec(turn: int, amounts: Document, slots: int = 1) -> Document:
    owner = {"pod": {"name": f"nobody-{turn}"}}
    return {"owners": [owner], "resources": amounts, "slots": slots}


def _placed(target: Target, slots: int, **placement: object) -> Document:
    where = {"nodeSelector": target.labels} | placement if target.labels else placement
    return _spec(0, {"cpu": "1m"}, slots) | {"placement": where}


def _term(labels: Document) -> Document:
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}


def _keys(count: int, turn: int) -> Document:
    keys = [{"key": f"k{turn}-{number}", "operator": "DoesNotExist"} for number in range(count)]
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": keys}}


def _pod(
    target: Target,
    *,
    cpu: str = "1m",
    ports: Sequence[object] = (),
    limits: Document | None = None,
    **spec: object,
) -> Document:
    resources = {"requests": {"cpu": cpu}, "limits": limits or {}}
    container = {"name": "main", "image": "none", "resources": resources, "ports": ports}
    whole = {"schedulerName": target.scheduler, "containers": [container], **spec}
    if target.labels and "nodeName" not in spec:
        whole["nodeSelector"] = target.labels
    return {"metadata": {"labels": {"app": APP}}, "spec": whole}
