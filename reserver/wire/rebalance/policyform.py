"""A policy file: bytes to a `Policy`, or to all that is wrong with it.

Upstream decodes the whole file first, then validates it, then sets defaults and builds the plugins
(`LoadPolicyConfig` and `newDescheduler` in pkg/descheduler). What fails at a stage ends there, with
all its problems. The outer document is lenient, ``args`` are strict; what upstream ignores in
silence is a warning here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from reserver.cluster.labels import EVERYTHING, Selector
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.rebalance.arguments.evictor import UNCONFIGURED
from reserver.rebalance.policy import Arguments, EvictionLimits, Policy, Profile
from reserver.wire.k8s import labelselector
from reserver.wire.rebalance import document, metricsform, written
from reserver.wire.rebalance.evictorform import DefaultEvictor, PriorityClasses
from reserver.wire.rebalance.parts import Args, Problems
from reserver.wire.rebalance.plugins import EVICTOR, PLUGINS, POINTS
from reserver.wire.rebalance.shape import ignored, refused, shaped

API_VERSION = "descheduler/v1alpha2"
KIND = "DeschedulerPolicy"

_INTERNAL = ("", "descheduler/__internal")
_UNREAD = ("presort", "sort")


class Reading(NamedTuple):
    """The result of reading a policy file.

    Attributes:
        policy: None if there are problems.
        problems: why it is refused.
        warnings: what it says without effect.
    """

    policy: Policy | None
    problems: tuple[InvalidInput, ...]
    warnings: tuple[InvalidInput, ...]


class _Config(NamedTuple):
    """One entry of ``pluginConfig``; `args` is None for a plugin that nobody knows."""

    path: str
    name: str
    args: Args | None


class _Profile(NamedTuple):
    """A profile whose arguments are decoded."""

    path: str
    written: written.Profile
    configs: list[_Config]

    def config(self, name: str) -> _Config | None:
        """Return the arguments of a plugin: the first of that name."""
        return next((each for each in self.configs if each.name == name), None)

    @property
    def evictor(self) -> DefaultEvictor | None:
        """The arguments of its evictor; None if it has none."""
        config = self.config(EVICTOR)
        return config.args if config and isinstance(config.args, DefaultEvictor) else None


class _Refused(Exception):
    def __init__(self, problems: Iterable[InvalidInput]) -> None:
        super().__init__()
        self.problems = tuple(problems)


def read(raw: bytes, classes: PriorityClasses) -> Reading:
    """Return what a policy file says.

    Args:
        raw: the file, YAML or JSON.
        classes: the value of a PriorityClass; asked for each `priorityThreshold.name`.
    """
    warnings: list[InvalidInput] = []
    try:
        policy = _read(raw, classes, warnings)
    except _Refused as exc:
        return Reading(None, exc.problems, tuple(warnings))
    except InvalidInput as exc:
        return Reading(None, (exc,), tuple(warnings))
    return Reading(policy, (), tuple(warnings))


def _read(raw: bytes, classes: PriorityClasses, warnings: list[InvalidInput]) -> Policy:
    policy, profiles = _decoded(raw, warnings)
    _refuse(_problems(policy, profiles))
    warnings += _warnings(policy, profiles)
    _refuse(_load_problems(policy, profiles, classes))
    limits = EvictionLimits(
        per_node=policy.max_no_of_pods_to_evict_per_node,
        per_namespace=policy.max_no_of_pods_to_evict_per_namespace,
        total=policy.max_no_of_pods_to_evict_total,
    )
    return Policy(
        profiles=tuple(_profile(each, classes) for each in profiles),
        node_selector=_node_selector(policy),
        limits=limits,
        grace_period_seconds=policy.grace_period_seconds,
        eviction_failure_event_notification=policy.eviction_failure_event_notification,
        metrics_providers=metricsform.providers(policy),
    )


def _refuse(problems: Problems) -> None:
    """Raise all problems of a stage together, if there are any."""
    found = list(problems)
    if found:
        raise _Refused(found)


def _decoded(raw: bytes, warnings: list[InvalidInput]) -> tuple[written.Policy, list[_Profile]]:
    value, has_more = document.parse(raw)
    if has_more:
        problem = "only the first document is read"
        warnings.append(InvalidInput("", problem, "write one policy in a file"))
    if value is not None and not isinstance(value, dict):
        raise InvalidInput("", "is no mapping", f"write apiVersion: {API_VERSION}")
    if _is_internal(value or {}):
        problem = "is missing, so upstream reads nothing of the file: the policy is empty"
        warnings.append(InvalidInput("apiVersion", problem, f"write {API_VERSION}"))
        return written.Policy(), []
    policy, problems, strays = shaped(value, written.Policy)
    warnings += ignored(strays)
    if policy is None:
        raise _Refused(problems)
    profiles = []
    for index, profile in enumerate(policy.profiles):
        path = f"profiles[{index}]"
        profiles.append(_Profile(path, profile, _configs(profile, path, problems, warnings)))
    _refuse(iter(problems))
    return policy, profiles


def _is_internal(value: dict[str, Any]) -> bool:
    """Return whether upstream takes its own internal form for what a document is.

    Raises:
        InvalidInput: it is another kind of document.
    """
    for field, known in (("apiVersion", (API_VERSION, *_INTERNAL)), ("kind", (KIND, ""))):
        said = value.get(field)
        if said is not None and (not isinstance(said, str) or said not in known):
            problem = f"{shorten(repr(said))} is not known"
            raise InvalidInput(field, problem, f"write {known[0]}")
    return (value.get("apiVersion") or "") in _INTERNAL


def _configs(
    profile: written.Profile,
    above: str,
    problems: list[InvalidInput],
    warnings: list[InvalidInput],
) -> list[_Config]:
    configs = []
    for index, entry in enumerate(profile.plugin_config):
        path = f"{above}.pluginConfig[{index}]"
        args: Args | None = None
        if entry.name in PLUGINS:
            args, refusals, remarks = _args(entry.args, PLUGINS[entry.name])
            problems += (each.under(f"{path}.args") for each in refusals)
            warnings += (each.under(f"{path}.args") for each in remarks)
        configs.append(_Config(path, entry.name, args))
    return configs


def _args(
    value: Any,  # noqa: ANN401 - whatever YAML can hold
    kind: type[Args],
) -> tuple[Args | None, list[InvalidInput], list[InvalidInput]]:
    """Return the arguments of a plugin, why they are refused, and what is ignored in them.

    What is given twice in YAML is gone before upstream decodes it, so that only JSON is refused.
    """
    args, problems, strays = shaped(value, kind)
    is_yaml = not isinstance(value, document.JsonFields)
    accepted = [each for each in strays if each.is_twice and is_yaml]
    others = [each for each in strays if each not in accepted]
    malformed = args.malformed() if args else ()
    return args, [*problems, *refused(others), *malformed], ignored(accepted)


def _problems(policy: written.Policy, profiles: list[_Profile]) -> Problems:
    """Yield what `validateDeschedulerConfiguration` refuses."""
    for profile in profiles:
        for config in profile.configs:
            if config.args is None:
                problem = f"{shorten(repr(config.name))} is no plugin"
                remedy = f"write one of {', '.join(PLUGINS)}"
                yield InvalidInput(f"{config.path}.name", problem, remedy)
                continue
            for each in config.args.problems():
                yield each.under(f"{config.path}.args")
    yield from metricsform.problems(policy)


def _load_problems(
    policy: written.Policy, profiles: list[_Profile], classes: PriorityClasses
) -> Problems:
    """Yield what upstream refuses when it sets defaults and builds plugins."""
    for profile in profiles:
        yield from _threshold_problems(profile, classes)
        for point, enabled in _enabled(profile.written.plugins):
            for index, name in enumerate(enabled):
                path = f"{profile.path}.plugins.{point}.enabled[{index}]"
                yield from _plugin_problems(profile, path, point, name)
    try:
        _node_selector(policy)
    except InvalidInput as exc:
        yield exc


def _threshold_problems(profile: _Profile, classes: PriorityClasses) -> Problems:
    config, evictor = profile.config(EVICTOR), profile.evictor
    if config is None or evictor is None:
        return
    try:
        evictor.threshold(classes)
    except InvalidInput as exc:
        yield exc.under(f"{config.path}.args")


def _plugin_problems(profile: _Profile, path: str, point: str, name: str) -> Problems:
    if name not in POINTS[point]:
        place = next((each for each, names in POINTS.items() if name in names), None)
        remedy = f"enable it at {place}" if place else f"write {', '.join(sorted(POINTS[point]))}"
        yield InvalidInput(path, f"{shorten(repr(name))} is no plugin of {point}", remedy)
    elif name != EVICTOR and profile.config(name) is None:
        remedy = f"write - name: {name} below {profile.path}.pluginConfig"
        yield InvalidInput(path, f"{name} has no pluginConfig", remedy)


def _enabled(plugins: written.Plugins) -> Iterator[tuple[str, tuple[str, ...]]]:
    for point in POINTS:
        yield point, getattr(plugins, point).enabled


def _warnings(policy: written.Policy, profiles: list[_Profile]) -> Problems:
    for profile in profiles:
        yield from _point_warnings(profile)
        used = {name for _, enabled in _enabled(profile.written.plugins) for name in enabled}
        seen: set[str] = set()
        for config in profile.configs:
            if config.args is None:
                continue
            if config.name in seen:
                problem = f"{config.name} has an entry above, which counts"
                yield InvalidInput(config.path, problem, "remove one of them")
            elif config.name not in used | {EVICTOR}:
                problem = f"{config.name} is not enabled, so its args have no effect"
                yield InvalidInput(config.path, problem, "enable it below plugins, or remove it")
            seen.add(config.name)
            for each in config.args.warnings():
                yield each.under(f"{config.path}.args")
    yield from metricsform.warnings(policy)
    if policy.grace_period_seconds is not None and policy.grace_period_seconds < 0:
        problem = f"{policy.grace_period_seconds} is negative: the API server refuses evictions"
        yield InvalidInput("gracePeriodSeconds", problem, "write 0 or more")


def _point_warnings(profile: _Profile) -> Problems:
    for point in written.Plugins.__struct_fields__:
        plugins: written.PluginSet = getattr(profile.written.plugins, point)
        path = f"{profile.path}.plugins.{point}"
        if plugins.enabled and point in _UNREAD:
            problem = "is ignored: there are no such plugins"
            yield InvalidInput(f"{path}.enabled", problem, "remove it")
        if plugins.disabled:
            problem = "is ignored: only what is enabled runs"
            yield InvalidInput(f"{path}.disabled", problem, "remove it")


def _profile(profile: _Profile, classes: PriorityClasses) -> Profile:
    evictor = profile.evictor
    plugins = profile.written.plugins
    return Profile(
        name=profile.written.name,
        evictor=evictor.resolved(classes) if evictor else UNCONFIGURED,
        deschedule=_strategies(profile, plugins.deschedule.enabled),
        balance=_strategies(profile, plugins.balance.enabled),
    )


def _strategies(profile: _Profile, enabled: tuple[str, ...]) -> tuple[Arguments, ...]:
    configs = (profile.config(name) for name in enabled)
    return tuple(each.args.value() for each in configs if each and each.args)


def _node_selector(policy: written.Policy) -> Selector:
    try:
        return labelselector.parse(policy.node_selector) if policy.node_selector else EVERYTHING
    except InvalidInput as exc:
        raise exc.under("nodeSelector") from exc
