"""The files of mutual TLS, for settings that need nothing else of it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class TlsFiles(NamedTuple):
    """What mutual TLS needs, as PEM files; they may be replaced while Reserver runs."""

    certificate: Path
    private_key: Path
    client_ca: Path
