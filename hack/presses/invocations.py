"""The commands to interrupt: each command of the command line, and some with a live Reserver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import typer

from hack.presses.stage import Stage
from reserver.cli import help as help_
from reserver.cli import usage_errors
from reserver.cli.main import app

_VALUES = {
    "NAME": "web-1",
    "NAME...": "web-1",
    "[NAMESPACE/]NAME": "shop/web-0",
    "[NAMESPACE/]POD": "shop/web-0",
    "NODE": "worker-1",
    "FILE": "-",
    "SHELL": "bash",
    "--from STORE": "configmap:reserver-system/reservations",
    "--to STORE": "crd:reserver-system",
}
"""The value for each kind of required parameter; a new kind takes a line here."""

_SPEC = ("--owner", "pod/web-0", "--cpu", "100m")
_MORE = {
    ("create",): ("web-1", *_SPEC),
    ("update",): ("--cpu", "1"),
    ("extend",): ("--ttl", "1h"),
    ("release",): ("web-1",),
    ("skip",): ("web-1",),
    ("rebalance", "plan"): ("--defragment",),
    ("rebalance", "run"): ("--make-room", "--mode", "reserve-first"),
    ("serve",): ("--http-port", "0", "--grpc-address", "127.0.0.1:0"),
}
"""Further arguments by command; a usage error names the command that needs a line here."""

_GRACEFUL = {("serve",), ("demo",)}
_OWN = frozenset({0, 1})


@dataclass(frozen=True)
class Invocation:
    """A command line.

    Attributes:
        words: the arguments, without the program.
        variables: variables of its environment.
        lasts: the command does not end by itself.
        has_terminal: the command runs in a terminal.
        statuses: allowed exit statuses besides the signal's.
    """

    words: tuple[str, ...]
    variables: Mapping[str, str]
    lasts: bool = False
    has_terminal: bool = False
    statuses: frozenset[int] = field(default=frozenset())

    def __str__(self) -> str:
        """Return what reports call it."""
        return f"reserver {' '.join(self.words)} ({', '.join(self.variables)})"


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each command there is, with its words."""
    for path, command in help_.tree(typer.main.get_command(app)):
        if help_.runs(command):
            yield path, command


def words_of(path: tuple[str, ...], command: Any) -> tuple[str, ...]:  # noqa: ANN401 - as above
    """Return a valid command line for a command."""
    given: list[str] = []
    for each in command.params:
        if not each.required:
            continue
        if each.param_type_name == "argument":
            given.append(_VALUES[help_.names(each)])
        else:
            flag, kind = max(each.opts, key=len), usage_errors.kind(each)
            given += (flag, _VALUES.get(f"{flag} {kind}") or _VALUES[kind])
    return (*path, *given, *_MORE.get(path, ()))


def each_command(stage: Stage) -> list[Invocation]:
    """Return all commands before an API server that does not answer; their input stays open."""
    return [
        Invocation(
            words_of(path, command),
            {"KUBECONFIG": stage.silent_kubeconfig},
            statuses=frozenset({0, 1, 3}),
        )
        for path, command in commands()
    ]


def _calls(way: dict[str, str]) -> list[Invocation]:
    """Return commands that call Reserver, by the way that environment variables give."""
    return [
        Invocation(("watch",), way, lasts=True),
        Invocation(("watch", "-o", "json"), way, lasts=True, has_terminal=True),
        Invocation(("get", "-w"), way, lasts=True, has_terminal=True),
        Invocation(("release", "--all"), way, lasts=True, has_terminal=True),
        Invocation(("create", "-f", "-"), way, lasts=True),
        Invocation(("get",), way, statuses=_OWN),
        Invocation(("explain", "pod", "shop/web-0"), way, statuses=_OWN),
        Invocation(("top", "nodes"), way, statuses=_OWN),
        Invocation(("dump",), way, statuses=_OWN),
        Invocation(("history",), way, statuses=_OWN),
    ]


def live(stage: Stage) -> list[Invocation]:
    """Return commands with a Reserver that answers, direct and tunnelled, and some that wait."""
    direct, tunnelled = {"RESERVER_ADDRESS": stage.address}, {"KUBECONFIG": stage.kubeconfig}
    api = {"KUBECONFIG": stage.kubeconfig}
    silent = {"RESERVER_ADDRESS": stage.silent_address, "KUBECONFIG": stage.silent_kubeconfig}
    complete = {
        "_RESERVER_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": "reserver get ",
    }
    editing = direct | {"EDITOR": "sh -c 'sleep 600'"}
    policy = ("--policy-config-file", stage.policy)
    interval = ("rebalance", "run", *policy, "--descheduling-interval", "5m")
    return [
        *_calls(direct),
        *_calls(tunnelled),
        Invocation(("moves", "-w"), api, lasts=True),
        Invocation(("move", "shop/web-0"), api, statuses=_OWN),
        Invocation(("drain", "worker-2", "--dry-run"), api, statuses=_OWN),
        Invocation(("serve", *_MORE["serve",]), api, lasts=True, statuses=frozenset({0})),
        Invocation(interval, api, lasts=True, statuses=frozenset({0})),
        Invocation(("rebalance", "plan", "--defragment"), api, statuses=_OWN),
        Invocation(("rebalance", "plan", "--defragment", "-f", "-"), api, lasts=True),
        Invocation(("rebalance", "plan", "--make-room", "--pods", "-"), api, lasts=True),
        Invocation(("rebalance", "plan", "--policy-config-file", "-"), api, lasts=True),
        Invocation(("edit", "kept"), editing, lasts=True, has_terminal=True, statuses=_OWN),
        Invocation(("demo",), {}, lasts=True, has_terminal=True, statuses=_OWN),
        Invocation(("demo", "--once"), {}, statuses=_OWN),
        Invocation(("demo", "--tour"), {}, lasts=True, has_terminal=True, statuses=_OWN),
        Invocation(("get",), silent, statuses=frozenset({3})),
        Invocation((), silent | complete, statuses=_OWN),
    ]
