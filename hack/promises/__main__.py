"""`python -m hack.promises FOLDER` judges a recorded history; exit status 1 if a promise broke."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from hack.promises.check import Rules, judge, read_history


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.promises", description=__doc__)
    parser.add_argument("folder", type=Path, help="with history.jsonl, perhaps manager.jsonl")
    parser.add_argument(
        "--scheduler",
        action="append",
        metavar="NAME",
        help="that has Reserver as its extender; may be repeated (default: reserver-scheduler)",
    )
    parser.add_argument("--grace", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--patience", type=float, default=15.0, metavar="SECONDS")
    parser.add_argument("--cleaner", type=float, default=30.0, metavar="SECONDS")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    options = parser.parse_args()
    rules = Rules(
        schedulers=frozenset(options.scheduler or ("reserver-scheduler",)),
        grace_s=options.grace,
        patience_s=options.patience,
        cleaner_s=options.cleaner,
    )
    report = judge(read_history(options.folder), rules)
    if options.output == "json":
        print(msgspec.json.format(msgspec.json.encode(report.document())).decode())
    else:
        print(report)
    sys.exit(bool(report.violations))


if __name__ == "__main__":
    main()
