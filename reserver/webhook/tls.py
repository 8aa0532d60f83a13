"""TLS of the webhooks: a certificate that is replaced while calls go on."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Any

import structlog

from reserver.errors import ConfigurationError
from reserver.http.tls import bare_context, load, server_context, stamped
from reserver.http.tls_files import TlsFiles
from reserver.webhook.certificate_secret import ServingPair

log = structlog.get_logger(__name__)


class WebhookTls:
    """What webhooks are served with: files, or a certificate that Reserver keeps.

    API servers need no certificate. So unlike the extender's (`http.tls`) there is one context,
    into which a new certificate is loaded: it counts for new connections, and no call on one that
    is open is lost.
    """

    def __init__(self, files: TlsFiles | None) -> None:
        """Serve with files, or with nothing before `serve` is called.

        Raises:
            ConfigurationError: the files cannot be read, or do not belong together.
        """
        self._files = files
        self._context = bare_context()
        self._told = ""
        if files is not None:
            self._stamp = stamped(files)
            load(self._context, files)

    @property
    def context(self) -> ssl.SSLContext:
        """The context; of files that have been replaced the new ones, once they can be read."""
        if self._files is not None:
            try:
                stamp = stamped(self._files)
                if stamp != self._stamp:
                    server_context(self._files)  # What fails leaves a context without any.
                    load(self._context, self._files)
                    self._stamp, self._told = stamp, ""
                    log.info("certificates read again")
            except ConfigurationError as exc:  # The next connection looks again.
                if str(exc) != self._told:
                    self._told = str(exc)
                    log.warning(
                        "certificates cannot be read, the former ones serve", why=self._told
                    )
        return self._context

    def serve(self, pair: ServingPair) -> None:
        """Serve with another certificate from now on."""
        # ssl reads files only, and there may be no file system to write to.
        descriptor = os.memfd_create("reserver-webhook")
        try:
            os.write(descriptor, pair.certificate + pair.private_key)
            self._context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)

    def refused_name(self, certificate: Mapping[str, Any] | None) -> str | None:  # noqa: ARG002 - as ServerTls
        """Return None: everybody may ask, and what is answered says nothing of others."""
        return None
