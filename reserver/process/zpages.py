"""The z-pages: the settings in force, the flags, the state of the process.

Components of Kubernetes have them (KEP-4827, KEP-4828): /flagz and /statusz for a person, /configz
for a program, too. They are served where only trusted callers come.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from typing import Any

from reserver import DISTRIBUTION
from reserver.http.answer import HttpResponse, Paths, text
from reserver.http.request import HttpRequest
from reserver.process.reload import Reload
from reserver.settings.configuration import show_duration
from reserver.settings.flags import declared
from reserver.settings.serve import Settings

_HEADER = """
reserver {}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
guarantees and is for debugging purposes only.

"""
"""As components of Kubernetes write it, with the name of the page."""


def paths(reload: Reload, others: Iterable[str]) -> Paths:
    """Return the handlers of the pages, given the paths that are served beside them."""
    began, served = time.time(), [*others]

    def status() -> HttpResponse:
        return text(statusz(began, time.time(), served))

    pages = {
        "/configz": lambda: HttpResponse(reload.configz()),
        "/flagz": lambda: text(flagz(reload.settings)),
        "/statusz": status,
    }
    served += pages
    return {path: ("GET", partial(_answer, page)) for path, page in pages.items()}


def _answer(page: Callable[[], HttpResponse], _: HttpRequest) -> HttpResponse:
    return page()


def flagz(settings: Settings) -> str:
    """Return each flag with its value in force, from the command line, the file or by default."""
    lines = []
    for each in declared(settings):
        value = getattr(settings, each.field)
        said = map(_written, value if each.is_repeated else (value,))
        lines.append(f"{each.name.removeprefix('--')}={','.join(said)}\n")
    return "".join((_HEADER.format("flagz"), *sorted(lines)))


def _written(value: Any) -> str:  # noqa: ANN401 - of any type that flags have
    """Return a value as the command line has it."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return show_duration(value)
        case str(address), int(port):
            return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        case tuple():
            return "/".join(value)
    return "" if value is None else str(value)


def statusz(began: float, now: float, served: Iterable[str]) -> str:
    """Return for how long the process has served, its versions, and its paths.

    Args:
        began: in seconds since 1970.
        now: the same.
        served: the paths; the first part of each is shown.
    """
    started = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(began))
    minutes, seconds = divmod(int(now - began), 60)
    hours, minutes = divmod(minutes, 60)
    folders = sorted({f"/{path.split('/')[1]}" for path in served})
    lines = (
        f"Started: {started}",
        f"Up: {hours} hr {minutes:02} min {seconds:02} sec",
        f"Python version: {platform.python_version()}",
        f"Binary version: {version(DISTRIBUTION)}",
        f"Paths: {' '.join(folders)}",
    )
    return _HEADER.format("statusz") + "".join(f"{line}\n" for line in lines)
