"""A policy file: bytes to a `DeschedulerPolicy`, or to all that is wrong with it.

As upstream does (`LoadPolicyConfig` and `newDescheduler` in pkg/descheduler), it decodes the whole
file first, then validates it. What fails at a stage ends there, with all its problems. The outer
document is lenient, ``args`` are strict; what upstream ignores in silence is a warning here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from reserver.cluster.labels import EVERYTHING, Selector
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import selectors
from reserver.rebalance import policy as written
from reserver.rebalance.arguments.base import Problems
from reserver.rebalance.arguments.evictor import UNCONFIGURED, DefaultEvictor
from reserver.rebalance.policy import (
    EVICTOR,
    PLUGINS,
    POINTS,
    Arguments,
    DeschedulerPolicy,
    EvictionLimits,
    Profile,
)
from reserver.rebalance.policy_decoding import DecodedProfile, PriorityClasses, decode

_UNREAD = ("presort", "sort")


class PolicyReading(NamedTuple):
    """The result of reading a policy file.

    Attributes:
        policy: None if there are problems.
        problems: reasons to refuse the file.
        warnings: fields without effect.
    """

    policy: DeschedulerPolicy | None
    problems: tuple[InvalidInput, ...]
    warnings: tuple[InvalidInput, ...]


def read(raw: bytes, classes: PriorityClasses) -> PolicyReading:
    """Read a policy file.

    Args:
        raw: the file, YAML or JSON.
        classes: the value of a PriorityClass; asked for each `priorityThreshold.name`.
    """
    warnings: list[InvalidInput] = []
    try:
        policy, problems = _read(raw, classes, warnings)
    except InvalidInput as exc:
        policy, problems = None, [exc]
    return PolicyReading(policy, tuple(problems), tuple(warnings))


def _read(
    raw: bytes, classes: PriorityClasses, warnings: list[InvalidInput]
) -> tuple[DeschedulerPolicy | None, Sequence[InvalidInput]]:
    """Go from stage to stage, up to the first that finds problems."""
    policy, profiles, problems, prefix, around = decode(raw, classes, warnings)
    problems = problems or list(_problems(policy, profiles))
    if not problems:
        warnings += _warnings(policy, profiles)
        problems = list(_load_problems(policy, profiles))
    if prefix:
        warnings[:] = [each.under(prefix) for each in warnings]
        problems = [each.under(prefix) for each in problems]
    warnings += around
    return None if problems else _value(policy, profiles), problems


def _value(policy: written.PolicyDocument, profiles: Sequence[DecodedProfile]) -> DeschedulerPolicy:
    limits = EvictionLimits(
        per_node=policy.max_no_of_pods_to_evict_per_node,
        per_namespace=policy.max_no_of_pods_to_evict_per_namespace,
        total=policy.max_no_of_pods_to_evict_total,
    )
    return DeschedulerPolicy(
        profiles=tuple(map(_profile, profiles)),
        node_selector=_node_selector(policy),
        limits=limits,
        grace_period_seconds=policy.grace_period_seconds,
        eviction_failure_event_notification=policy.eviction_failure_event_notification,
        prometheus=policy.prometheus,
    )


def _problems(policy: written.PolicyDocument, profiles: Sequence[DecodedProfile]) -> Problems:
    """Yield what `validateDeschedulerConfiguration` refuses."""
    for profile in profiles:
        for config in profile.configs:
            if config.args is None:
                problem = f"{shorten(repr(config.name))} is not a plugin"
                remedy = f"write one of {', '.join(PLUGINS)}"
                yield InvalidInput(f"{config.path}.name", problem, remedy)
                continue
            for each in config.args.problems():
                yield each.under(f"{config.path}.args")
    yield from policy.problems()


def _load_problems(policy: written.PolicyDocument, profiles: Sequence[DecodedProfile]) -> Problems:
    """Yield what upstream refuses when it sets defaults and builds plugins."""
    for profile in profiles:
        for point, enabled in _enabled(profile.written.plugins):
            for index, name in enumerate(enabled):
                path = f"{profile.path}.plugins.{point}.enabled[{index}]"
                yield from _plugin_problems(profile, path, point, name)
    try:
        _node_selector(policy)
    except InvalidInput as exc:
        yield exc


def _plugin_problems(profile: DecodedProfile, path: str, point: str, name: str) -> Problems:
    if name not in POINTS[point]:
        place = next((each for each, names in POINTS.items() if name in names), None)
        remedy = f"enable it at {place}" if place else f"write {', '.join(sorted(POINTS[point]))}"
        yield InvalidInput(path, f"{shorten(repr(name))} is not a plugin of {point}", remedy)
    elif name != EVICTOR and profile.config(name) is None:
        remedy = f"write - name: {name} below {profile.path}.pluginConfig"
        yield InvalidInput(path, f"{name} has no pluginConfig", remedy)


def _enabled(plugins: written.Plugins) -> Iterator[tuple[str, tuple[str, ...]]]:
    for point in POINTS:
        yield point, getattr(plugins, point).enabled


def _warnings(policy: written.PolicyDocument, profiles: Sequence[DecodedProfile]) -> Problems:
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
    yield from policy.warnings()


def _point_warnings(profile: DecodedProfile) -> Problems:
    for point in written.Plugins.__struct_fields__:
        plugins: written.PluginSet = getattr(profile.written.plugins, point)
        path = f"{profile.path}.plugins.{point}"
        if plugins.enabled and point in _UNREAD:
            problem = "is ignored: there are no such plugins"
            yield InvalidInput(f"{path}.enabled", problem, "remove it")
        if plugins.disabled:
            problem = "is ignored: only what is enabled runs"
            yield InvalidInput(f"{path}.disabled", problem, "remove it")


def _profile(profile: DecodedProfile) -> Profile:
    config = profile.config(EVICTOR)
    args = config.args if config else None
    plugins = profile.written.plugins
    return Profile(
        name=profile.written.name,
        evictor=args if isinstance(args, DefaultEvictor) else UNCONFIGURED,
        deschedule=_strategies(profile, plugins.deschedule.enabled),
        balance=_strategies(profile, plugins.balance.enabled),
    )


def _strategies(profile: DecodedProfile, enabled: tuple[str, ...]) -> tuple[Arguments, ...]:
    configs = (profile.config(name) for name in enabled)
    return tuple(cast("Arguments", each.args) for each in configs if each and each.args)


def _node_selector(policy: written.PolicyDocument) -> Selector:
    with under("nodeSelector"):
        return (
            selectors.parse_selector(policy.node_selector) if policy.node_selector else EVERYTHING
        )
