"""The results of upstream's specs on each version, and their table in docs/compatibility.md."""

from __future__ import annotations

from pathlib import Path

from hack.release.record import Record, Run, lines, share


def table(runs: list[Run]) -> str:
    """Return a table with a row for each suite and version."""
    if not runs:
        return "Nothing is recorded yet: `make conformance ARGS=--record` writes the table.\n"
    ways = dict.fromkeys(name for run in runs for name in run.counts)
    rows = [["version", "specs", *ways, "on", "at commit"], ["---"] * (len(ways) + 4)]
    for run in runs:
        shares = (share(run, way) for way in ways)
        rows.append([run.version, run.suite, *shares, run.date, f"`{run.commit}`"])
    return lines(rows)


RECORD = Record(
    Path(__file__).with_name("record.json"),
    "<!-- Written by `make conformance`, from hack/conformance/record.json. -->\n",
    "<!-- End of what `make conformance` writes. -->\n",
    table,
)

if __name__ == "__main__":
    RECORD.add()
