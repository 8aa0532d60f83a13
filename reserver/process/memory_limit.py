"""The memory limit of this process's cgroup: of its container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from prometheus_client.core import GaugeMetricFamily, Metric

_CGROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_UNLIMITED = 1 << 60
"""So much version 1 has where nobody has set a limit."""


def memory_limit(own: Path = _OWN, cgroups: Path = _CGROUPS) -> int:
    """Return the limit in bytes, as it is now; 0 without one."""
    try:
        lines = own.read_text().splitlines()
    except OSError:  # Not on Linux.
        return 0
    found = [limit for line in lines for limit in _limits(line, cgroups)]
    return min(found, default=0)


def _limits(line: str, cgroups: Path) -> Iterator[int]:
    """Yield the limits of a cgroup, and of those that it is in."""
    _, controllers, path = line.split(":", 2)
    if controllers and "memory" not in controllers.split(","):
        return
    folder, name = (
        (cgroups / "memory", "memory.limit_in_bytes") if controllers else (cgroups, "memory.max")
    )
    within = PurePosixPath(path.lstrip("/"))
    for each in (within, *within.parents):
        try:
            text = (folder / each / name).read_text().strip()
        except OSError:  # A container sees only its own, as the root.
            continue
        if text.isdecimal() and int(text) < _UNLIMITED:
            yield int(text)


def measured() -> Iterator[Metric]:
    """Yield the limit."""
    told = "Memory limit of the container, by its cgroup; 0 without one."
    yield GaugeMetricFamily("reserver_memory_limit_bytes", told, value=memory_limit())
