"""The costliest ProvisioningRequests, and their PodTemplates."""

from __future__ import annotations

from typing import Any

from hack.hostile.costly import documents
from hack.hostile.costly.documents import AMOUNTS, EXTREMES, REQUIRED
from hack.hostile.costly.entry import REQUEST, STANDING, TEMPLATE, Document, Entries, Target, enter

ENTRIES: Entries = {}

template = enter(ENTRIES, TEMPLATE)
request = enter(ENTRIES, REQUEST)

_REFUSED_TEMPLATES = tuple(
    f"{name}-{number}" for name in ("large-template", "resources-template") for number in range(2)
)


@template
def small_template(target: Target, turn: int) -> Document:
    """Request next to nothing, or more than any node has."""
    return _template(target, cpu="1m" if turn % 2 else "100")


@template
def neighbours_template(target: Target, turn: int) -> Document:
    """Constrain pods of its own kind and all others, in as many terms as Reserver reads."""
    terms = [
        {"topologyKey": key, "labelSelector": {"matchExpressions": [absent]}}
        for number in range(target.many(7))
        for key in ("kubernetes.io/hostname", f"hostile.example/zone-{number}")
        for absent in [{"key": f"k{turn}-{number}", "operator": "DoesNotExist"}]
    ]
    if turn % 2:
        spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        return _template(target, topologySpreadConstraints=[{**spread, **each} for each in terms])
    odd = [documents.term({"app": f"x{turn}-{number}"}) for number in range(target.many(16))]
    return _template(target, affinity={"podAntiAffinity": {REQUIRED: odd}})


@template
def large_template(target: Target, turn: int) -> Document:
    """Exceed the size that Reserver reads: 1 MB."""
    terms = [documents.term({"app": f"x{turn}-{number}"}) for number in range(target.many(7_000))]
    return _template(target, affinity={"podAntiAffinity": {REQUIRED: terms}})


@template
def resources_template(target: Target, turn: int) -> Document:
    """Request unknown resources, and amounts beyond any integer."""
    amounts = {f"hostile.example/t{turn}-{n}": "1" for n in range(target.many(2_000))}
    return _template(target, cpu=AMOUNTS[turn % len(AMOUNTS)], limits=amounts)


@request
def neighbours_request(_: Target, turn: int) -> Document:
    """Have as many slots with constraints on each other as allowed: 100 (core 10)."""
    return _request(*[(f"neighbours-template-{n % STANDING}", 20) for n in range(5)], turn=turn)


@request
def wide_request(_: Target, turn: int) -> Document:
    """Have as many podSets of as many pods as allowed."""
    return _request(*[("small-template-1", 1_000)] * 32, turn=turn)


@request
def refused_request(_: Target, turn: int) -> Document:
    """Name oversized templates, one after the other, and an absent one."""
    names = (*_REFUSED_TEMPLATES, "no-such-template")
    return _request((names[turn % len(names)], 1), turn=turn)


@request
def extreme_request(_: Target, turn: int) -> Document:
    """Use extreme counts and durations."""
    written = _request(("small-template-0", 1), turn=turn)
    written["podSets"][0]["count"] = EXTREMES[turn % len(EXTREMES)]
    lasts = ("1e300h", "-1s", "9" * 250 + "h", "1ns", "", "720h1s", "\x1b[2J", "0x1p99s")
    written["parameters"] = {"validFor": lasts[turn % len(lasts)]}
    return written if turn % 2 else {**written, "parameters": {f"p{n}": "x" for n in range(99)}}


@enter(ENTRIES, REQUEST, standing=900)
def waiting_request(_: Target, turn: int) -> Document:
    """Add another request for room that will never exist."""
    return _request(("small-template-0", 1), turn=turn)


def _template(target: Target, cpu: str = "1m", **spec: Any) -> Document:  # noqa: ANN401
    pod = documents.pod(target, cpu=cpu, **spec)
    return {**pod, "spec": {**pod["spec"], "restartPolicy": "Always"}}


def _request(*pod_sets: tuple[str, int], turn: int) -> Document:
    sets = [{"podTemplateRef": {"name": name}, "count": count} for name, count in pod_sets]
    parameters = {
        "validFor": ("10s", "1h")[turn % 2],
        "noRetry": ("false", "false", "true")[turn % 3],
    }
    kind = {"provisioningClassName": "hold.reserver.io"}
    return {**kind, "podSets": sets, "parameters": parameters}
