"""`reserver serve`: the extender of kube-scheduler."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence

from reserver.cli import interrupt
from reserver.errors import ConfigurationError
from reserver.process import logs
from reserver.settings.configuration import feature_gates
from reserver.settings.configuration_file import configured
from reserver.settings.flags import Stage, declared
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
    except* ConfigurationError as group:
        for problem in _leaves(group):
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


def _leaves(group: BaseExceptionGroup) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


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
