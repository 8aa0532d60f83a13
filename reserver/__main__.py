"""`python -m reserver` is the `reserver` command."""

from __future__ import annotations

from reserver.cli.entry import main

main()
