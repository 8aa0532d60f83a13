"""Random policies, over every strategy, option and limit; and broken ones."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from hack.descheduler.arguments import BALANCE, DESCHEDULE
from hack.descheduler.clusters import STORAGE_CLASSES
from hack.differential.draw import (
    NAMESPACE_LABELS,
    POD_LABELS,
    Json,
    Random,
    label_selector,
)

_NODE_SELECTORS = ("topology.kubernetes.io/zone in (a,b)", "disk=ssd", "!row", "rack", "cores>4")


def policy(draw: Random) -> Json:
    """Return a policy, mostly with one strategy, so that a difference names the strategy."""
    found: Json = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
    for field, likely in (
        ("maxNoOfPodsToEvictPerNode", 0.2),
        ("maxNoOfPodsToEvictPerNamespace", 0.2),
        ("maxNoOfPodsToEvictTotal", 0.2),
    ):
        if draw.random() < likely:
            found[field] = draw.choice((0, 1, 1, 2, 2, 3, 5))
    if draw.random() < 0.15:
        found["nodeSelector"] = draw.choice(_NODE_SELECTORS)
    if draw.random() < 0.1:
        found["gracePeriodSeconds"] = draw.choice((0, 30))
    profiles = draw.choice((1, 1, 1, 1, 2))
    found["profiles"] = [_profile(draw, f"p{number}") for number in range(profiles)]
    return found


def _profile(draw: Random, name: str) -> Json:
    chosen = draw.sample(list(_STRATEGIES), draw.choice((1, 1, 1, 2, 3)))
    configs = [{"name": each, "args": _STRATEGIES[each](draw)} for each in chosen]
    if draw.random() < 0.8:
        configs.append({"name": "DefaultEvictor", "args": _evictor(draw)})
    draw.shuffle(configs)
    plugins: Json = {}
    for point, names in (("deschedule", DESCHEDULE), ("balance", BALANCE)):
        enabled = [each for each in chosen if each in names]
        if enabled:
            plugins[point] = {"enabled": enabled}
    return {"name": name, "pluginConfig": configs, "plugins": plugins}


def _evictor(draw: Random) -> Json:
    kinds: dict[str, Callable[[], Any]] = {
        "nodeFit": lambda: True,
        "nodeSelector": lambda: draw.choice(_NODE_SELECTORS),
        "labelSelector": lambda: label_selector(draw, POD_LABELS),
        "namespaceLabelSelector": lambda: label_selector(draw, NAMESPACE_LABELS),
        "priorityThreshold": lambda: draw.choice(
            ({"value": 5}, {"value": 2_000}, {"name": "high"}, {"name": "low"}, {})
        ),
        "minReplicas": lambda: draw.choice((1, 2, 4)),
        "minPodAge": lambda: draw.choice(("3m", "15m", "1.5h")),
        "noEvictionPolicy": lambda: draw.choice(("Preferred", "Mandatory")),
    }
    likely = {"nodeFit": 0.35}
    args = {key: make() for key, make in kinds.items() if draw.random() < likely.get(key, 0.08)}
    return args | _protections(draw)


def _protections(draw: Random) -> Json:
    kind = draw.random()
    if kind < 0.3:
        flags = (
            *("evictLocalStoragePods", "evictDaemonSetPods", "evictSystemCriticalPods"),
            *("ignorePvcPods", "ignorePodsWithoutPDB", "evictFailedBarePods"),
        )
        return {flag: True for flag in flags if draw.random() < 0.35}
    if kind < 0.6:
        disabled = ("PodsWithLocalStorage", "DaemonSetPods", "SystemCriticalPods", "FailedBarePods")
        extra = ("PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims")
        protections: Json = {
            "defaultDisabled": [each for each in disabled if draw.random() < 0.4],
            "extraEnabled": [each for each in extra if draw.random() < 0.25],
        }
        if draw.random() < 0.4:
            classes = [{"name": draw.choice(STORAGE_CLASSES)}]
            protections["config"] = {"PodsWithPVC": {"protectedStorageClasses": classes}}
        return {"podProtections": protections}
    return {}


_STRATEGIES = DESCHEDULE | BALANCE


def strategies(policy: Json) -> list[str]:
    """Return the strategies that a policy enables."""
    points = [point for profile in policy["profiles"] for point in profile["plugins"].values()]
    return [name for point in points for name in point["enabled"]]


def file(draw: Random) -> str:
    """Return a policy file with up to three changes, some of which upstream refuses."""
    found = policy(draw)
    if draw.random() < 0.3:
        found["metricsProviders"] = [_provider(draw)]
    for _ in range(draw.choice((0, 1, 1, 1, 2, 3))):
        _change(draw, found)
    if draw.random() < 0.3:
        return json.dumps(found)
    text = yaml.safe_dump(found, sort_keys=False)
    return f"{text}{draw.choice(QUIRKS)}" if draw.random() < 0.05 else text


QUIRKS = (
    *("quirk: yes\n", "quirk: 010\n", "quirk: 0x10\n", "quirk: 1_000\n", "quirk: 12:30\n"),
    *("quirk: 1\nquirk: 2\n", "quirk: !!str 5\n", "<<: {quirk: 1}\n", "on: 1\n"),
)
"""Lines that upstream passes over as unknown fields, and Reserver refuses (docs/rebalance.md)."""


def has_quirk(text: str) -> bool:
    """Return whether a file has a quirk of YAML at its end."""
    return text.endswith(QUIRKS)


def _provider(draw: Random) -> Json:
    prometheus: Json = {"url": draw.choice(("http://prometheus:9090", "", ":x", "http://a b/"))}
    if draw.random() < 0.5:
        prometheus["authToken"] = {"secretReference": {"namespace": "a", "name": "b"}}
    return {"source": draw.choice(("Prometheus", "KubernetesMetrics")), "prometheus": prometheus}


_STRANGE: tuple[Any, ...] = (
    *(None, 5, -1, 1.5, 1e30, True, "", "x", "yes", "5m", [], {}, ["x"], [None], {"x": 1}),
    *("RemoveDuplicates", "DefaultEvictor", "PodLifeTime", [5], {"matchLabels": {"a b": "c"}}),
)


def _change(draw: Random, policy: Json) -> None:
    """Change one thing somewhere in a policy."""
    if draw.random() < 0.02:
        policy[draw.choice(("apiVersion", "kind"))] = draw.choice((5, True, [], {}, "x", 0))
        return
    places = list(_places(policy))
    if not places:
        return
    owner, key = draw.choice(places)
    kind = draw.random()
    if kind < 0.5:
        owner[key] = copy.deepcopy(draw.choice(_STRANGE))
    elif kind < 0.65:
        del owner[key]
    elif isinstance(owner, list):
        owner.append(copy.deepcopy(owner[key]))
    elif kind < 0.85:
        letter = str(key)[:1]
        owner[f"{letter.swapcase()}{str(key)[1:]}"] = owner.pop(key)
    else:
        owner[draw.choice(("extra", "nodeFit", "args", "enabled", "name"))] = draw.choice(_STRANGE)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - whatever JSON can hold
    """Yield each place of a value but apiVersion and kind."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in pairs:
        if key not in {"apiVersion", "kind"}:
            yield value, key
        if isinstance(each, dict | list):
            yield from _places(each)
