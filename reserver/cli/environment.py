"""The variables of the environment that are settings of `reserver serve`, and those that are none.

Kubernetes adds variables for each Service of a pod's namespace: a Service `reserver-http` gives
RESERVER_HTTP_PORT=tcp://10.0.0.7:80. They are no settings, whatever they are called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from reserver.settings.flags import declared
from reserver.settings.serve import Settings

_PREFIX = "RESERVER_"
_OF_SERVICE = re.compile(
    r"RESERVER_([A-Z0-9_]+_)?"
    r"(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_ADDRESS = re.compile(r"(tcp|udp|sctp)://.*")
_PORT = "_PORT"


def of_services(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the variables that Kubernetes has added for a Service."""
    for name, value in environment.items():
        is_port = name.startswith(_PREFIX) and name.endswith(_PORT)
        if _OF_SERVICE.fullmatch(name) or (is_port and _ADDRESS.fullmatch(value)):
            yield name


def unknown_variable(environment: Mapping[str, str]) -> str:
    """Return an error if a variable begins with RESERVER_ and is no setting; else ""."""
    known = {each.variable for each in declared(Settings)}
    strange = sorted(name for name in environment if name.startswith(_PREFIX))
    strange = [name for name in strange if name not in known]
    if not strange:
        return ""
    known |= set(_of_commands())  # A shell may have them, and so may a pod for `kubectl exec`.
    name = next((name for name in strange if name not in known), "")
    if not name:
        return ""
    words = [each.removeprefix(_PREFIX) for each in known if each]
    near = get_close_matches(name.removeprefix(_PREFIX), words, n=1, cutoff=0.7)
    remedy = f"did you mean {_PREFIX}{near[0]}?" if near else "remove it; see reserver serve --help"
    return f"{name}: is no setting of Reserver; {remedy}"


def _of_commands() -> Iterator[str]:
    """Yield the variables of the other commands; importing them takes Typer."""
    from typer.main import get_command

    from reserver.cli.help import runs, tree
    from reserver.cli.main import app

    for _, command in tree(get_command(app)):
        if runs(command):
            yield from (str(each.envvar) for each in command.params if each.envvar)
