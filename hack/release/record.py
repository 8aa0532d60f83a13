"""The results on each version of Kubernetes, and their tables in docs/compatibility.md.

A run writes both; `python -m hack.release.record` and `python -m hack.conformance.record` write a
table from the recorded results, after a merge for example.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/compatibility.md"


@dataclass(frozen=True)
class Run:
    """The results on one version.

    Attributes:
        version: the version of the API server, without the `v`.
        commit: Reserver's commit, with a mark for uncommitted changes.
        date: in UTC, as YYYY-MM-DD.
        counts: the passed and the run tests, by subject.
        suite: the suite of upstream's specs; empty for Reserver's own scenarios.
    """

    version: str
    commit: str
    date: str
    counts: Mapping[str, tuple[int, int]]
    suite: str = ""

    @property
    def key(self) -> tuple[list[int], str]:
        """Its minor version and suite."""
        return [int(part) for part in self.version.split(".")[:2]], self.suite


@dataclass(frozen=True)
class Record:
    """Runs in a file, and the table of them.

    Attributes:
        file: of the runs.
        begin: the line of the page before the table.
        end: the line after it.
        table: returns it.
    """

    file: Path
    begin: str
    end: str
    table: Callable[[list[Run]], str]

    def runs(self) -> list[Run]:
        """Return the recorded runs, the oldest version first."""
        return [
            Run(**{**each, "counts": {name: tuple(two) for name, two in each["counts"].items()}})
            for each in json.loads(self.file.read_text())
        ]

    def page(self) -> str:
        """Return the page with the table of the recorded runs."""
        return replaced(PAGE.read_text(), self.begin, self.end, self.table(self.runs()))

    def add(self, *new: Run) -> None:
        """Record runs in place of runs of the same suite and minor version; write the table."""
        kept = [run for run in self.runs() if run.key not in [each.key for each in new]]
        runs = sorted([*kept, *new], key=lambda run: run.key)
        lines = ",\n".join(json.dumps(asdict(run)) for run in runs)
        self.file.write_text(f"[\n{lines}\n]\n")
        PAGE.write_text(self.page())


def replaced(page: str, begin: str, end: str, written: str) -> str:
    """Return a page with something else between two of its lines."""
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{written}\n{end}{after}"


def table(runs: list[Run]) -> str:
    """Return a table of scenarios with a column for each version."""
    groups = dict.fromkeys(name for run in runs for name in run.counts)
    titles = ["scenarios that passed", *(run.version for run in runs)]
    rows = [
        titles,
        ["---"] * len(titles),
        *([name, *(share(run, name) for run in runs)] for name in groups),
        ["all of these", *(share(run, *run.counts) for run in runs)],
        ["on", *(run.date for run in runs)],
        ["at commit", *(f"`{run.commit}`" for run in runs)],
    ]
    return lines(rows)


def lines(rows: Iterable[Iterable[str]]) -> str:
    """Return the rows of a table as Markdown."""
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def share(run: Run, *names: str) -> str:
    """Return the passed and the run tests of some names."""
    passed, tried = (sum(run.counts.get(name, (0, 0))[at] for name in names) for at in (0, 1))
    return f"{passed} of {tried}" if tried else "not run"


RECORD = Record(
    Path(__file__).with_name("record.json"),
    "<!-- Written by `make release-check`, from hack/release/record.json. -->\n",
    "<!-- End of what it writes. -->\n",
    table,
)

if __name__ == "__main__":
    RECORD.add()
