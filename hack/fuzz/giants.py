"""Inputs of a mebibyte where a line belongs: any client with a right to write may send them."""

from __future__ import annotations

import json
from collections.abc import Callable

from hack.fuzz import provisioning, shapes
from hack.fuzz.readers import question

_LARGE = 1_000_000  # just below what the API server takes
_SPEC = json.dumps(shapes.SPEC)


def _key(text: str) -> bytes:
    """Return a value as the key of a store that a watch shows: all that others write comes so."""
    store = {"metadata": shapes.METADATA, "data": {"worker-1": text}}
    return json.dumps([{"type": "ADDED", "object": store}]).encode()


def _term(**labels: str) -> object:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": labels}}


def _keys(count: int) -> object:
    keys = [{"key": f"k{number}", "operator": "DoesNotExist"} for number in range(count)]
    return {"topologyKey": "zone", "labelSelector": {"matchExpressions": keys}}


def _placed(**placement: object) -> dict[str, object]:
    spec = {key: value for key, value in shapes.SPEC.items() if key not in {"node", "ttl"}}
    return spec | {"placement": placement}


def _object(spec: dict[str, object]) -> bytes:
    """Return an object that is valid as a Reservation, as a pod in a call and as a store."""
    affinity = spec.get("placement", {"affinity": {}})
    whole = {**shapes.RESERVATIONS[0], "spec": spec}
    pod = {**shapes.POD, "spec": {**shapes.POD["spec"], **affinity}}  # type: ignore[dict-item]
    return json.dumps(
        {**pod, **whole, "Pod": pod, "NodeNames": [], "data": {"web": json.dumps(spec)}}
    ).encode()


def _pod(**spec: object) -> bytes:
    """Return a pod, as an object, in a call and in a watch."""
    pod = {**shapes.POD, "spec": {**shapes.POD["spec"], **spec}}
    return json.dumps({**pod, "Pod": pod, "NodeNames": ["worker-1"]}).encode()


def _request(template: object = None, **more: object) -> bytes:
    """Return a ProvisioningRequest with its template, some of its parts replaced."""
    spec = {**provisioning.REQUEST["spec"], **more}
    whole = {**provisioning.REQUEST, "spec": spec}
    return json.dumps(whole | ({"template": {"spec": template}} if template else {})).encode()


def _question() -> bytes:
    terms = [_term(app=f"x{number}") for number in range(2_000)]
    affinity = {"podAntiAffinity": {shapes.REQUIRED: terms}}
    spec = {**shapes.QUESTION[1], "placement": {"affinity": affinity}}
    return question(*[spec] * 6)


GIANTS: dict[str, Callable[[], bytes]] = {
    "deep-list": lambda: b"[" * _LARGE,
    "deep-object": lambda: b'{"a":' * (_LARGE // 5),
    "deep-value": lambda: b'[{"type":"ADDED","object":' + b"[" * 100_000 + b"]" * 100_000 + b"}]",
    "digits": lambda: b"9" * _LARGE,
    "spaces": lambda: b" " * _LARGE + b"{}",
    "item-list": lambda: json.dumps([shapes.SHORT_ITEM] * 8_000).encode(),
    "junk-list": lambda: b"[" + b"0," * (_LARGE // 2) + b"0]",
    "long-name": lambda: _SPEC.replace("web-0", "a" * _LARGE).encode(),
    "long-dots": lambda: _SPEC.replace("web-0", "a." * (_LARGE // 2)).encode(),
    "many-owners": lambda: json.dumps(
        {**shapes.SPEC, "owners": shapes.SPEC["owners"] * 8_000}
    ).encode(),
    "many-fields": lambda: json.dumps({f"f{number}": 0 for number in range(60_000)}).encode(),
    "yaml-deep": lambda: b"- " * 30_000,
    "yaml-braces": lambda: b"a: " + b"{" * 60_000,
    "yaml-aliases": lambda: b"a: &a [x]\n" + b"b: [*a, *a, *a, *a]\n" * 3_000,
    "yaml-long": lambda: b"a: b\n" * 13_000,
    "yaml-question": lambda: b"? " * 30_000,
    "yaml-quote": lambda: b'"' + b"\\n" * 30_000,
    "store-deep": lambda: _key("[" * _LARGE),
    "store-digits": lambda: _key('{"slots": ' + "9" * _LARGE + "}"),
    "store-items": lambda: _key(json.dumps([shapes.SHORT_ITEM] * 8_000)),
    "store-yaml": lambda: _key("- " * 30_000),
    "store-empty": lambda: json.dumps(
        {"metadata": shapes.METADATA, "data": {f"k{number}": "{}" for number in range(20_000)}}
    ).encode(),
    "many-terms": lambda: _object(
        _placed(
            affinity={
                "podAntiAffinity": {shapes.REQUIRED: [_term(app=f"x{n}") for n in range(9_000)]}
            }
        )
    ),
    "many-keys": lambda: _object(
        _placed(affinity={"podAffinity": {shapes.REQUIRED: [_keys(10_000)]}})
    ),
    "many-spreads": lambda: _object(_placed(topologySpreadConstraints=[_keys(3)] * 4_000)),
    "many-selectors": lambda: _object(
        {
            **shapes.SPEC,
            "owners": [{"selector": {"matchLabels": {f"k{n}": "v"}}} for n in range(10_000)],
        }
    ),
    "many-resources": lambda: _object(
        {**shapes.SPEC, "resources": {f"hostile.example/r{n}": 1 for n in range(20_000)}}
    ),
    "extreme-numbers": lambda: _object(
        {**shapes.SPEC, "resources": {"cpu": "9" * 400_000}, "slots": int("9" * 4_000)}
    ),
    "pod-ports": lambda: _pod(
        containers=[{"ports": [{"hostPort": n, "hostIP": f"10.0.0.{n}"} for n in range(15_000)]}]
    ),
    "pod-resources": lambda: _pod(
        containers=[
            {"resources": {"requests": {f"hostile.example/r{n}": "1" for n in range(20_000)}}}
        ]
    ),
    "pod-volumes": lambda: _pod(
        volumes=[
            {"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}}
            for n in range(10_000)
        ]
    ),
    "pod-tolerations": lambda: _pod(tolerations=[{"key": f"k{n}"} for n in range(30_000)]),
    "claims": lambda: json.dumps([f"shop/hold-{n}@1" for n in range(40_000)]).encode(),
    "question": _question,
    "request-pod-sets": lambda: _request(
        podSets=[{"podTemplateRef": {"name": f"t{n}"}, "count": 1_000} for n in range(18_000)]
    ),
    "request-counts": lambda: _request(
        podSets=[{"podTemplateRef": {"name": f"t{n}"}, "count": 1_000} for n in range(32)]
    ),
    "request-digits": lambda: _request(
        podSets=[{"podTemplateRef": {"name": "t"}, "count": int("9" * 4_000)}]
    ),
    "request-name": lambda: _request(podSets=[{"podTemplateRef": {"name": "t" * _LARGE}}]),
    "request-parameters": lambda: _request(parameters={f"k{n}": "v" for n in range(60_000)}),
    "request-valid": lambda: _request(parameters={"validFor": "9" * _LARGE}),
    "request-containers": lambda: _request({"containers": [{"name": "c"}] * 60_000}),
    "request-resources": lambda: _request(
        {"containers": [{"resources": {"requests": {f"h.example/r{n}": "1" for n in range(900)}}}]}
    ),
}
"""By name, what makes each."""
