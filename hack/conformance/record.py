"""What of upstream's specs passed on each version, and the table of it in docs/compatibility.md.

`python -m hack.conformance` writes both; `python -m hack.conformance.record` writes the table from
what was recorded, after a merge for example.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from hack.release.record import PAGE, replaced

FILE = Path(__file__).with_name("record.json")
_BEGIN = "<!-- Written by `make conformance`, from hack/conformance/record.json. -->\n"
_END = "<!-- End of what `make conformance` writes. -->\n"


@dataclass(frozen=True)
class Run:
    """What was run of a suite on one version.

    Attributes:
        version: of Kubernetes, as its API server says it, without the `v`.
        suite: its name.
        commit: of Reserver; it says so if there were changes beside it.
        date: in UTC, as YYYY-MM-DD.
        ways: by name, how many specs passed, and how many were run.
    """

    version: str
    suite: str
    commit: str
    date: str
    ways: Mapping[str, tuple[int, int]]


def load(text: str) -> list[Run]:
    """Return what was recorded, the oldest version first."""
    return [
        Run(**{**each, "ways": {name: tuple(two) for name, two in each["ways"].items()}})
        for each in json.loads(text)
    ]


def with_runs(runs: Iterable[Run], new: Iterable[Run]) -> list[Run]:
    """Return the runs with new ones in place of the same suite on the same minor version."""
    by_key = {_key(run): run for run in (*runs, *new)}
    return [by_key[key] for key in sorted(by_key)]


def write(runs: list[Run]) -> None:
    """Write down runs, and the table of them."""
    lines = ",\n".join(json.dumps(asdict(run)) for run in runs)
    FILE.write_text(f"[\n{lines}\n]\n")
    PAGE.write_text(with_table(PAGE.read_text(), runs))


def with_table(page: str, runs: list[Run]) -> str:
    """Return the page with the table of these runs."""
    return replaced(page, _BEGIN, _END, table(runs))


def table(runs: list[Run]) -> str:
    """Return a table with a row for each suite and version."""
    if not runs:
        return "Nothing is recorded yet: `make conformance ARGS=--record` writes the table.\n"
    ways = dict.fromkeys(name for run in runs for name in run.ways)
    rows = [
        ["version", "specs", *ways, "on", "at commit"],
        ["---"] * (len(ways) + 4),
        *(
            [
                run.version,
                run.suite,
                *(_share(run, way) for way in ways),
                run.date,
                f"`{run.commit}`",
            ]
            for run in runs
        ),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _share(run: Run, way: str) -> str:
    passed, tried = run.ways.get(way, (0, 0))
    return f"{passed} of {tried}" if tried else "not run"


def _key(run: Run) -> tuple[tuple[int, ...], str]:
    return tuple(int(part) for part in run.version.split(".")[:2]), run.suite


if __name__ == "__main__":
    write(load(FILE.read_text()))
