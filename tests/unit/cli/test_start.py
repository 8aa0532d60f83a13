"""What a start need not wait for."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("aiohttp", "grpc", "kubernetes", "msgspec", "numpy", "rich.console", "structlog", "uvloop")
ASKED_FOR = ("kubernetes", "aiohttp.web", "highspy", "grpc", "google.protobuf", "cryptography")
"""What kubeconfigs, the demo, solvers, the gRPC API and webhooks need, and nothing else."""


def imported(modules: tuple[str, ...], code: str) -> list[str]:
    """Return which of some modules are imported once some code has run."""
    code += f"; import sys; print(*[m for m in {modules} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_commands_are_known_before_anything_heavy_is_imported() -> None:
    assert imported(HEAVY, "import reserver.cli.main") == []


def test_serve_imports_nothing_for_what_it_is_not_asked_to_serve() -> None:
    assert imported(ASKED_FOR, "import reserver.cli.serve, reserver.app") == []
