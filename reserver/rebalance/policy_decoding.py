"""A policy file as upstream decodes it: the outer document is lenient, ``args`` are strict."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from reserver.cluster.labels import NOTHING, Selector
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import selectors
from reserver.rebalance import policy as written
from reserver.rebalance.arguments.base import Args, Int32, LabelSelector, PolicyPart
from reserver.rebalance.arguments.evictor import SYSTEM_CRITICAL
from reserver.rebalance.policy import PLUGINS
from reserver.rebalance.policy_import import API_VERSION, KIND, imported
from reserver.settings import strict_yaml as document
from reserver.settings.struct_reader import Readers, Walk, ignored, refused

_INTERNAL = ("", "descheduler/__internal")


class Config(NamedTuple):
    """One entry of ``pluginConfig``; `args` is None for an unknown plugin."""

    path: str
    name: str
    args: Args | None


class DecodedProfile(NamedTuple):
    """A profile whose arguments are decoded."""

    path: str
    written: written.ProfileDocument
    configs: list[Config]

    def config(self, name: str) -> Config | None:
        """Return the arguments of a plugin: the first of that name."""
        return next((each for each in self.configs if each.name == name), None)


class Decoded(NamedTuple):
    """A policy file that is decoded.

    Attributes:
        policy: the outer document.
        profiles: its profiles, with the arguments of their plugins.
        problems: reasons to refuse the file; `policy` and `profiles` are undefined then.
        prefix: the path to the policy in the file; empty at the top.
        ignored: ignored fields of an enclosing document.
    """

    policy: written.PolicyDocument = written.PolicyDocument()
    profiles: Sequence[DecodedProfile] = ()
    problems: Sequence[InvalidInput] = ()
    prefix: str = ""
    ignored: Sequence[InvalidInput] = ()


def decode(raw: bytes, classes: PriorityClasses, warnings: list[InvalidInput]) -> Decoded:
    """Decode a policy file without checking its values.

    Args:
        raw: the file, YAML or JSON.
        classes: the value of a PriorityClass.
        warnings: receives ignored fields.

    Raises:
        InvalidInput: the file is another kind of document.
    """
    value, has_more = document.parse(raw)
    if has_more:
        problem = "only the first document is read"
        warnings.append(InvalidInput("", problem, "write one policy in a file"))
    if value is not None and not isinstance(value, dict):
        raise InvalidInput("", "is not a mapping", f"write apiVersion: {API_VERSION}")
    value, prefix, around = imported(value or {})
    if _is_internal(value):
        problem = "is missing, so upstream reads nothing of the file: the policy is empty"
        warnings.append(InvalidInput("apiVersion", problem, f"write {API_VERSION}"))
        return Decoded()
    known = readers(classes)
    walk = Walk(known)
    policy = walk.read(value, written.PolicyDocument)
    warnings += ignored(walk.strays)
    if policy is None:
        return Decoded(problems=walk.problems, prefix=prefix, ignored=around)
    problems: list[InvalidInput] = []
    profiles = []
    for index, profile in enumerate(policy.profiles):
        path = f"profiles[{index}]"
        configs = [
            _config(entry, f"{path}.pluginConfig[{at}]", known, problems)
            for at, entry in enumerate(profile.plugin_config)
        ]
        profiles.append(DecodedProfile(path, profile, configs))
    return Decoded(policy, profiles, problems, prefix, around)


def _is_internal(value: dict[str, Any]) -> bool:
    """Return whether a document has upstream's internal version.

    Raises:
        InvalidInput: the document is of another kind.
    """
    for field, known in (("apiVersion", (API_VERSION, *_INTERNAL)), ("kind", (KIND, ""))):
        said = value.get(field)
        if said is not None and (not isinstance(said, str) or said not in known):
            problem = f"{shorten(repr(said))} is not known"
            raise InvalidInput(field, problem, f"write {known[0]}")
    return (value.get("apiVersion") or "") in _INTERNAL


def _config(
    entry: written.PluginConfig, path: str, known: Readers, problems: list[InvalidInput]
) -> Config:
    """Return an entry with its arguments; add invalid arguments to the problems."""
    if entry.name not in PLUGINS:
        return Config(path, entry.name, None)
    walk = Walk(known)
    args = walk.read(entry.args, PLUGINS[entry.name])
    problems += (each.under(f"{path}.args") for each in [*walk.problems, *refused(walk.strays)])
    return Config(path, entry.name, args)


PriorityClasses = Callable[[str], int | None]
"""The value of a PriorityClass by its name; None if there is no such class."""

_DURATION = re.compile(
    r"(?P<sign>[-+]?)(?P<parts>(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+|0)"
)
_PART = re.compile(r"([0-9.]+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0,
}  # fmt: skip
_MOST_CHARACTERS = 100
_LONGEST_S = 2**63 / 1e9
"""Of a Go duration, which counts nanoseconds in an int64."""


class _Expression(PolicyPart, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class _Selector(PolicyPart, frozen=True):
    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[_Expression, ...] = ()


class _NamedSelector(PolicyPart, frozen=True):
    name: str = ""
    selector: LabelSelector = Selector()


class _Priority(PolicyPart, frozen=True):
    value: Int32 | None = None
    name: str = ""


def readers(classes: PriorityClasses) -> Readers:
    """Return the readers by their names in `reserver.rebalance.arguments.base`."""
    return {
        "duration": _duration,
        "selector": _selector,
        "named selector": lambda walk, value, path: (
            walk.struct(value, _NamedSelector, path).selector
        ),
        "text selector": _text_selector,
        "priority": lambda walk, value, path: _priority(walk, value, path, classes),
    }


def _duration(walk: Walk, value: Any, path: str) -> float:  # noqa: ANN401 - as written
    """Return a duration as Go's ``time.ParseDuration`` reads it, in seconds; it may be negative."""
    text = walk.text(value, path)
    match = _DURATION.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    seconds = math.inf
    if match:
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(match[0]))
    if match is None or seconds >= _LONGEST_S:
        problem = f"{shorten(repr(text))} is not a duration"
        raise InvalidInput(path, problem, "write hours, minutes and seconds, such as 24h or 1h30m")
    return -seconds if match["sign"] == "-" else seconds


def _text_selector(walk: Walk, value: Any, path: str) -> Selector:  # noqa: ANN401 - as above
    try:
        return selectors.parse_selector(walk.text(value, path))
    except InvalidInput:
        if not isinstance(value, str):
            raise
        return NOTHING


def _selector(walk: Walk, value: Any, path: str) -> Selector:  # noqa: ANN401 - as above
    """Return a label selector; one that the API server would refuse is a problem."""
    written = walk.struct(value, _Selector, path)
    terms = ((each.key, each.operator, each.values) for each in written.match_expressions)
    with under(path):
        return selectors.checked_selector(written.match_labels, terms)


def _priority(walk: Walk, value: Any, path: str, classes: PriorityClasses) -> int:  # noqa: ANN401 - as above
    """Return the priority from which pods stay."""
    written = walk.struct(value, _Priority, path)
    if written.value is not None and written.name:
        problem = f"has value {written.value} and name {shorten(repr(written.name))}"
        raise InvalidInput(path, problem, "write one of them")
    priority: int | None = SYSTEM_CRITICAL
    if written.value is not None:
        priority = written.value
    elif written.name:
        priority = classes(written.name)
    if priority is None:
        problem = f"there is no PriorityClass {shorten(repr(written.name))}"
        raise InvalidInput(f"{path}.name", problem, "write the name of one, or value")
    if priority > SYSTEM_CRITICAL:
        problem = f"{priority} is above {SYSTEM_CRITICAL}, where system pods begin"
        raise InvalidInput(path, problem, "write a lower one")
    return priority
