"""The names of TLS files, for settings that need no TLS code."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class TlsFiles(NamedTuple):
    """PEM files; they may be replaced while Reserver runs.

    Attributes:
        certificate: certificate of the server, with intermediate certificates.
        private_key: key of the certificate.
        client_ca: the CAs for client certificates; None if clients need no certificate.
    """

    certificate: Path
    private_key: Path
    client_ca: Path | None = None
