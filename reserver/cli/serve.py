"""`reserver serve`: the extender of kube-scheduler.

Its settings are read without Typer, whose imports take 0.2 s of CPU. Plainly valid flags are read
here, by the same declarations (`settings/flags.py`) and into the same settings. Typer reads all
other command lines: help, errors, and other forms of values.

Kubernetes adds variables for each Service of a pod's namespace: a Service `reserver-http` gives
RESERVER_HTTP_PORT=tcp://10.0.0.7:80. Such variables are not settings.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import NoneType
from typing import Any, get_args

from reserver.cli import interrupt
from reserver.errors import ConfigurationError, cause, leaves
from reserver.process import logs
from reserver.settings.configuration import feature_gates
from reserver.settings.configuration_file import configured
from reserver.settings.flags import Declared, Stage, declared
from reserver.settings.serve import Settings

_REBALANCE_FLAGS = {
    "policy": "--policy-config-file",
    "interval": "--descheduling-interval",
    "make-room": "--make-room",
    "compat": "--compat",
    "mode": "--mode",
    "dry-run": "--dry-run",
}
"""The former flags of `serve` after --rebalance-, and the flag of `reserver rebalance run`."""


def removed_setting(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return an error if a removed setting is given, which names the replacement; else ""."""
    flags = {argument.partition("=")[0] for argument in arguments}
    for name, flag in _REBALANCE_FLAGS.items():
        variable = f"RESERVER_REBALANCE_{name.replace('-', '_').upper()}"
        given = {f"--rebalance-{name}", f"--no-rebalance-{name}"} & flags
        if environment.get(variable):
            given.add(variable)
        if given:
            return (
                f"{min(given)}: `reserver serve` does not rebalance any more; run `reserver "
                f"rebalance run` with {flag} as a Deployment of its own "
                "(scheduler-config/rebalance/deployment, docs/rebalance.md#running)"
            )
    return ""


def serve(settings: Settings) -> None:
    """Serve the scheduler extender until SIGTERM or Ctrl-C.

    Examples:
        reserver serve
        reserver serve --kubeconfig ~/.kube/config --grpc-address 127.0.0.1:9443
    """
    import uvloop

    try:
        settings = configured(settings)
        logs.configure(settings.log_level, settings.logging_format)
        if interrupt.run(_serve(settings), uvloop.new_event_loop):
            sys.exit(1)  # As whenever it ends by itself: a supervisor starts it again.
    except (ConfigurationError, ExceptionGroup) as exc:
        if not isinstance(cause(exc, ConfigurationError), ConfigurationError):
            raise
        for problem in leaves(exc):
            for line in str(problem).splitlines():
                _report(line, settings)
        sys.exit(2)


def _report(problem: str, settings: Settings) -> None:
    """Report what keeps Reserver from starting; with JSON as a line of the log."""
    import structlog

    if not logs.is_json(settings.logging_format):
        print(f"reserver: {problem}", file=sys.stderr)
        return
    logs.configure(settings.log_level, settings.logging_format)
    structlog.get_logger(__name__).error("cannot start", why=problem)


def deprecated(settings: Settings) -> dict[str, str]:
    """Return the deprecated flags that were given, each with the field that replaces it."""
    flags = ((each, each.flag.in_file) for each in declared(Settings))
    return {
        each.name: here.path
        for each, here in flags
        if here and not here.keeps_flag and each.field in settings.given
    }


async def _serve(settings: Settings) -> bool:
    """Serve; return whether it ended to be started again."""
    import structlog

    from reserver import app

    log = structlog.get_logger(__name__)
    if flags := deprecated(settings):
        log.info("flags are deprecated, write the fields in the file of --config", **flags)
    gates = feature_gates(settings)
    if alpha := [each.name for each in gates if each.is_enabled and each.stage is Stage.ALPHA]:
        log.warning("alpha features are on, any release may change or remove them", features=alpha)
    stop = asyncio.Event()
    async with app.running(settings) as running:
        served = {
            "extender": running.url,
            "grpc": running.grpc_address,
            "webhooks": running.webhook_url,
            "health": running.health_url,
            "metrics": running.metrics_url,
        }
        with interrupt.handing(stop.set):
            log.info(
                "serving",
                **{name: address for name, address in served.items() if address},
                api_server=running.server,
                credentials=running.source,
                namespace=settings.namespace,
                configmaps=["/".join(each) for each in settings.configmaps],
            )
            await asyncio.wait(
                [asyncio.create_task(each.wait()) for each in (stop, running.restart)],
                return_when=asyncio.FIRST_COMPLETED,
            )
    log.info("stopped")
    return not stop.is_set()


_SWITCH = {"true": True, "1": True, "false": False, "0": False}
"""Values of a variable for a flag that takes none."""


def read_plainly(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings | None:
    """Return the settings that arguments and environment give; None where that takes Typer."""
    flags = {each.name: each for each in declared(Settings)}
    try:
        said = dict(_from_environment(flags, environment)) | _from_arguments(flags, arguments)
        values = {flags[name].field: flags[name].read(said[name]) for name in said}
        return Settings(**values, given=frozenset(values))
    except (KeyError, ValueError, ConfigurationError):
        return None


def _from_environment(
    flags: Mapping[str, Declared], environment: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    for name, flag in flags.items():
        if text := environment.get(flag.variable or ""):
            yield name, text.split() if flag.is_repeated else _value(flag, text)


def _from_arguments(flags: Mapping[str, Declared], arguments: Sequence[str]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, text = argument.partition("=")
        if name.startswith("--no-") or flags[name].kind is bool:
            switch = flags[name.replace("--no-", "--", 1)]
            if equals or switch.kind is not bool:
                raise ValueError(argument)
            said[switch.name] = switch.name == name
            continue
        text = text if equals else next(rest, "")
        if not text or text.startswith("-"):
            raise ValueError(argument)
        if flags[name].is_repeated:
            said.setdefault(name, []).append(text)
        else:
            said[name] = _value(flags[name], text)
    return said


def _value(flag: Declared, text: str) -> Any:  # noqa: ANN401 - of any type that flags have
    """Return Typer's value of a text; raises KeyError or ValueError where Typer has to read it."""
    if flag.flag.read is not None:
        return text
    if flag.flag.most is not None:
        return _number(text, flag.flag.most)
    kinds = [each for each in get_args(flag.kind) if each is not NoneType] or [flag.kind]
    make: Callable[[str], Any] = _MADE_BY.get(kinds[0], kinds[0])
    return make(text)


def _number(text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= most):
        raise ValueError(text)
    return int(text)


_MADE_BY: dict[Any, Callable[[str], Any]] = {bool: _SWITCH.__getitem__}
"""Converters of types whose constructor does not read text, as paths and enumerations do."""


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
    return f"{name}: is not a setting of Reserver; {remedy}"


def _of_commands() -> Iterator[str]:
    """Yield the variables of the other commands; importing them takes Typer."""
    from typer.main import get_command

    from reserver.cli.help import runs, tree
    from reserver.cli.main import app

    for _, command in tree(get_command(app)):
        if runs(command):
            yield from (str(each.envvar) for each in command.params if each.envvar)
