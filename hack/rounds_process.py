"""`reserver rebalance run` at an interval, as a process next to `reserver serve`."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hack.programs import started


@contextmanager
def rounds(*command: str, interval: str = "1s") -> Iterator[str]:
    """Run rounds while the block runs, and end them in order; yield the URL of their health.

    Args:
        command: the words of `reserver rebalance run`, without interval and health.
        interval: from the start of a round to the next.

    Raises:
        RuntimeError: it ended too early, or with an error.
    """
    flags = ("--descheduling-interval", interval, "--health-address", "127.0.0.1:0")
    with started(*command, *flags, stderr=subprocess.PIPE, text=True) as process:
        said = process.stderr or ()
        served = (json.loads(line) for line in said if '"event": "serving"' in line)
        url = next((each["health"] for each in served if "health" in each), "")
        if not url:
            raise RuntimeError(f"it ended before it served its health: {command}")
        draining = threading.Thread(target=list, args=(said,))
        draining.start()
        yield url
        process.terminate()
        draining.join(timeout=60)
        if process.wait(timeout=60):
            raise RuntimeError(f"it ended with {process.returncode}")
