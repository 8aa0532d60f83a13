"""The files of TLS, for settings that need nothing else of it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class TlsFiles(NamedTuple):
    """PEM files; they may be replaced while Reserver runs.

    Attributes:
        certificate: of the server, and what leads to its CA.
        private_key: that of the certificate.
        client_ca: the CAs whose certificates clients need; None where they need none.
    """

    certificate: Path
    private_key: Path
    client_ca: Path | None = None
