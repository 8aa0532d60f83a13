"""What `--help` and completion need not wait for."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("aiohttp", "grpc", "kubernetes", "msgspec", "numpy", "rich.console", "structlog", "uvloop")


def test_the_commands_are_known_before_anything_heavy_is_imported() -> None:
    code = f"import reserver.cli.main, sys; print(*[m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
