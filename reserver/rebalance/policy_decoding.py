"""A policy file as upstream decodes it: the outer document is lenient, ``args`` are strict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.rebalance import policy_schema as written
from reserver.rebalance.arguments.base import Args
from reserver.rebalance.field_readers import PriorityClasses, readers
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
        profiles: those of it, with the arguments of their plugins.
        problems: why it is refused; `policy` and `profiles` mean nothing then.
        prefix: the path to the policy in the file; empty at the top.
        ignored: what was ignored of another file around it.
    """

    policy: written.PolicyDocument = written.PolicyDocument()
    profiles: Sequence[DecodedProfile] = ()
    problems: Sequence[InvalidInput] = ()
    prefix: str = ""
    ignored: Sequence[InvalidInput] = ()


def decode(raw: bytes, classes: PriorityClasses, warnings: list[InvalidInput]) -> Decoded:
    """Return what a policy file says, without judging it.

    Args:
        raw: the file, YAML or JSON.
        classes: the value of a PriorityClass.
        warnings: what is ignored in it is added here.

    Raises:
        InvalidInput: it is another kind of document.
    """
    value, has_more = document.parse(raw)
    if has_more:
        problem = "only the first document is read"
        warnings.append(InvalidInput("", problem, "write one policy in a file"))
    if value is not None and not isinstance(value, dict):
        raise InvalidInput("", "is no mapping", f"write apiVersion: {API_VERSION}")
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


def _config(
    entry: written.PluginConfig, path: str, known: Readers, problems: list[InvalidInput]
) -> Config:
    """Return an entry with its arguments; what is wrong with them is added to the problems."""
    if entry.name not in PLUGINS:
        return Config(path, entry.name, None)
    walk = Walk(known)
    args = walk.read(entry.args, PLUGINS[entry.name])
    problems += (each.under(f"{path}.args") for each in [*walk.problems, *refused(walk.strays)])
    return Config(path, entry.name, args)
