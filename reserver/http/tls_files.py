"""The names of TLS files, for settings that need nothing else of TLS."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class TlsFiles(NamedTuple):
    """PEM files; they may be replaced while Reserver runs.

    Attributes:
        certificate: of the server, with the intermediate ones.
        client_ca: the CAs whose certificates clients need; None where they need none.
    """

    certificate: Path
    private_key: Path
    client_ca: Path | None = None
