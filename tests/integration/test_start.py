"""Modules that a start does not import."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("aiohttp", "grpc", "kubernetes", "msgspec", "numpy", "rich.console", "structlog", "uvloop")
ASKED_FOR = ("kubernetes", "aiohttp.web", "highspy", "grpc", "google.protobuf", "cryptography")
"""Modules only for kubeconfigs, the demo, solvers, the gRPC API and webhooks."""

OTHERS = ("typer", "pydantic", "click", "reserver.cli.main", "reserver.cli.flag_groups", "rich")
"""Modules of the other commands and of their errors."""

SERVING = """
from reserver.cli import entry, serve

async def nothing_more(settings):
    from reserver import app

serve._serve = nothing_more
entry.command(["serve"], "reserver")()
"""
"""Runs `reserver serve` up to where it would begin to serve."""


def run(code: str) -> list[str]:
    """Return the words that some code prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def imported(modules: tuple[str, ...], code: str) -> list[str]:
    """Return which of some modules are imported once some code has run."""
    return run(f"{code}\nimport sys; print(*[m for m in {modules} if m in sys.modules])")


def test_the_commands_are_known_before_anything_heavy_is_imported() -> None:
    assert imported(HEAVY, "import reserver.cli.main") == []


def test_a_plan_for_a_dump_imports_no_client() -> None:
    code = "import reserver.cli.rebalance"
    assert imported(("aiohttp", "grpc", "prometheus_client", "structlog"), code) == []


def test_serve_imports_nothing_for_what_it_is_not_asked_to_serve() -> None:
    assert imported((*ASKED_FOR, *OTHERS), SERVING) == []
