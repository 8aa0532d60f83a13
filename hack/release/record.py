"""What passed on each version of Kubernetes, and the table of it in docs/compatibility.md.

`python -m hack.release.version` writes both; `python -m hack.release.record` writes the table from
what was recorded, after a merge for example.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("record.json")
PAGE = ROOT / "docs/compatibility.md"
_BEGIN = "<!-- Written by `make release-check`, from hack/release/record.json. -->\n"
_END = "<!-- End of what it writes. -->\n"


@dataclass(frozen=True)
class Run:
    """What was run on one version.

    Attributes:
        version: of Kubernetes, as its API server says it, without the `v`.
        commit: of Reserver; it says so if there were changes beside it.
        date: in UTC, as YYYY-MM-DD.
        groups: by what they show, how many scenarios passed, and how many were run.
    """

    version: str
    commit: str
    date: str
    groups: Mapping[str, tuple[int, int]]


def read(text: str) -> list[Run]:
    """Return what was recorded, the oldest version first."""
    return [
        Run(**{**each, "groups": {name: tuple(two) for name, two in each["groups"].items()}})
        for each in json.loads(text)
    ]


def with_run(runs: Iterable[Run], new: Run) -> list[Run]:
    """Return the runs with a new one in place of that of the same minor version."""
    kept = [run for run in runs if _minor(run) != _minor(new)]
    return sorted([*kept, new], key=_minor)


def write(runs: list[Run]) -> None:
    """Write down runs, and the table of them."""
    lines = ",\n".join(json.dumps(asdict(run)) for run in runs)
    FILE.write_text(f"[\n{lines}\n]\n")
    PAGE.write_text(with_table(PAGE.read_text(), runs))


def with_table(page: str, runs: list[Run]) -> str:
    """Return the page with the table of these runs."""
    return replaced(page, _BEGIN, _END, table(runs))


def replaced(page: str, begin: str, end: str, written: str) -> str:
    """Return a page with something else between two of its lines."""
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{written}\n{end}{after}"


def table(runs: list[Run]) -> str:
    """Return a table with a column for each version."""
    groups = dict.fromkeys(name for run in runs for name in run.groups)
    titles = ["scenarios that passed", *(run.version for run in runs)]
    rows = [
        *([name, *(_share([run.groups.get(name)]) for run in runs)] for name in groups),
        ["all of these", *(_share(run.groups.values()) for run in runs)],
        ["on", *(run.date for run in runs)],
        ["at commit", *(f"`{run.commit}`" for run in runs)],
    ]
    ruler = "|---" * len(titles) + "|\n"
    return _line(titles) + ruler + "".join(map(_line, rows))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _share(counts: Iterable[tuple[int, int] | None]) -> str:
    known = [each for each in counts if each is not None]
    passed, tried = (sum(column) for column in zip(*known, strict=True)) if known else (0, 0)
    return f"{passed} of {tried}" if tried else "not run"


def _minor(run: Run) -> list[int]:
    return [int(part) for part in run.version.split(".")[:2]]


if __name__ == "__main__":
    write(read(FILE.read_text()))
