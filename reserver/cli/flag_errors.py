"""Errors in a spec that was made from flags, as errors of the flags."""

from __future__ import annotations

import re

from reserver.cli.failure import ExitStatus, Failed
from reserver.cli.similar import RESOURCES, did_you_mean
from reserver.cli.spec_flags import SpecFlags
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.settings.flags import declared


def flag_of(error: InvalidInput) -> Failed:
    """Return an error in a document that was made from flags, as an error of the flag."""
    flags = {"": "NAME"} | {each.path: each.name for each in declared(SpecFlags)}
    word, _, key = re.sub(r"\[", ".", error.path).partition(".")
    if word == "resources" and not error.path.endswith(("cpu", "memory")):
        return _of_resources(key, error)
    part = next((name for path, name in flags.items() if path.startswith(f"{word}.")), f"--{word}")
    flag = flags.get(error.path) or flags.get(word, part)
    return Failed(ExitStatus.USAGE, f"{flag}: {error.problem}; {error.remedy}")


def _of_resources(name: str, error: InvalidInput) -> Failed:
    if not name:
        problem = f"--cpu, --memory, --resource: the reservation {error.problem}"
        return Failed(ExitStatus.USAGE, f"{problem}; give an amount, e.g. --cpu 2")
    remedy = did_you_mean(name, RESOURCES, error.remedy)
    return Failed(ExitStatus.USAGE, f"--resource: {shorten(name)!r} {error.problem}; {remedy}")
