"""Runs one command after the other, with the standard streams that this process was given.

A terminal is only real if the process itself has it; one for each command would take a second.
"""

from __future__ import annotations

import json
import os
import sys

from reserver.cli import entry
from reserver.cli.main import app

END = "\x1e"


def main() -> None:
    """Run the commands that come, a line of JSON each; print the exit status behind each."""
    entry.settle()  # As `entry.main` does.
    with os.fdopen(int(sys.argv[1])) as orders:
        for line in orders:
            status: object = 0
            try:
                app(json.loads(line), prog_name="reserver")
            except SystemExit as exc:
                status = exc.code or 0
            for stream in (sys.stdout, sys.stderr):
                stream.write(f"{END}{int(str(status))}{END}")
                stream.flush()


if __name__ == "__main__":
    main()
