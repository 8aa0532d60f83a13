"""A policy file as upstream decodes it: the outer document is lenient, ``args`` are strict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.wire.rebalance import document, written
from reserver.wire.rebalance.evictorform import DefaultEvictor
from reserver.wire.rebalance.parts import Args
from reserver.wire.rebalance.plugins import EVICTOR, PLUGINS
from reserver.wire.rebalance.shape import ignored, refused, shaped

API_VERSION = "descheduler/v1alpha2"
KIND = "DeschedulerPolicy"

_INTERNAL = ("", "descheduler/__internal")


class Config(NamedTuple):
    """One entry of ``pluginConfig``; `args` is None for a plugin that nobody knows."""

    path: str
    name: str
    args: Args | None


class DecodedProfile(NamedTuple):
    """A profile whose arguments are decoded."""

    path: str
    written: written.Profile
    configs: list[Config]

    def config(self, name: str) -> Config | None:
        """Return the arguments of a plugin: the first of that name."""
        return next((each for each in self.configs if each.name == name), None)

    @property
    def evictor(self) -> DefaultEvictor | None:
        """The arguments of its evictor; None if it has none."""
        config = self.config(EVICTOR)
        return config.args if config and isinstance(config.args, DefaultEvictor) else None


class Decoded(NamedTuple):
    """A policy file that is decoded.

    Attributes:
        policy: the outer document.
        profiles: those of it, with the arguments of their plugins.
        problems: why it is refused; `policy` and `profiles` mean nothing then.
    """

    policy: written.Policy = written.Policy()
    profiles: Sequence[DecodedProfile] = ()
    problems: Sequence[InvalidInput] = ()


def decode(raw: bytes, warnings: list[InvalidInput]) -> Decoded:
    """Return what a policy file says, without judging it.

    Args:
        raw: the file, YAML or JSON.
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
    if _is_internal(value or {}):
        problem = "is missing, so upstream reads nothing of the file: the policy is empty"
        warnings.append(InvalidInput("apiVersion", problem, f"write {API_VERSION}"))
        return Decoded()
    policy, problems, strays = shaped(value, written.Policy)
    warnings += ignored(strays)
    if policy is None:
        return Decoded(problems=problems)
    profiles = []
    for index, profile in enumerate(policy.profiles):
        path = f"profiles[{index}]"
        profiles.append(DecodedProfile(path, profile, _configs(profile, path, problems, warnings)))
    return Decoded(policy, profiles, problems)


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
) -> list[Config]:
    configs = []
    for index, entry in enumerate(profile.plugin_config):
        path = f"{above}.pluginConfig[{index}]"
        args: Args | None = None
        if entry.name in PLUGINS:
            args, refusals, remarks = _args(entry.args, PLUGINS[entry.name])
            problems += (each.under(f"{path}.args") for each in refusals)
            warnings += (each.under(f"{path}.args") for each in remarks)
        configs.append(Config(path, entry.name, args))
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
