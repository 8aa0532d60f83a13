"""Findings about the settings that manifests give `reserver serve`: would this version start?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reserver.cli.checkup import Finding
from reserver.cli.environment import unknown_variable
from reserver.cli.preflight_files import Id, Object
from reserver.errors import ConfigurationError
from reserver.printable import printable
from reserver.settings.configuration import KIND, parse
from reserver.settings.flags import declared
from reserver.settings.serve import Settings

_CHECK = "settings"
_SERVE = ["reserver", "serve"]


def of_settings(there: Mapping[Id, Object]) -> Iterator[Finding]:
    """Yield findings about flags, variables and files with which this version would not start."""
    remedy = "correct the files before they are applied"
    for id_ in sorted(there):
        if id_.kind == "Deployment":
            for problem in _of_deployment(there[id_]):
                yield Finding(_CHECK, False, f"{id_}: {problem}", remedy)
        if id_.kind == "ConfigMap":
            for key, text in (there[id_].get("data") or {}).items():
                for problem in _of_file(str(text)):
                    said = f"{id_}: {printable(str(key))}: {problem}"
                    yield Finding(_CHECK, False, said, remedy)


def _of_deployment(deployment: Object) -> Iterator[str]:
    known = {each.name: each.kind for each in declared(Settings)}
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        command = [*(container.get("command") or ()), *(container.get("args") or ())]
        if command[:2] != _SERVE:
            continue
        for argument in command[2:]:
            name = str(argument).partition("=")[0]
            switch = name.replace("--no-", "--", 1)
            is_known = name in known or known.get(switch) is bool
            if name.startswith("--") and not is_known:
                yield f"{printable(name)} is no flag of this version"
        if problem := unknown_variable(_variables(container)):
            yield problem


def _variables(container: Mapping[str, Any]) -> dict[str, str]:
    return {str(each.get("name")): str(each.get("value")) for each in container.get("env") or ()}


def _of_file(text: str) -> Iterator[str]:
    """Yield the problems of a text if it is a configuration file."""
    if f"kind: {KIND}" not in text:
        return
    try:
        parse(text.encode())
    except ConfigurationError as exc:
        yield from str(exc).splitlines()
