"""The connection of the synchronous client; `connection` has its terms and attempts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import grpc

from reserver.client.connection import Attempts, ConnectionTerms

Response = TypeVar("Response")


class SyncConnection:
    """A channel to Reserver whose calls block.

    Attributes:
        terms: how it was made.
        channel: what stubs are made of.
    """

    def __init__(self, terms: ConnectionTerms) -> None:
        self.terms = terms
        if terms.credentials is None:
            self.channel = grpc.insecure_channel(terms.address, terms.options)
        else:
            self.channel = grpc.secure_channel(terms.address, terms.credentials, terms.options)

    def call(self, method: Callable[..., Response], request: object) -> Response:
        """Call until there is a final answer, or the deadline has passed.

        Raises:
            CallFailed: there was none, or it is a refusal.
        """
        attempts = Attempts(self.terms, time.monotonic())
        while True:
            left = attempts.left_s(time.monotonic())
            try:
                return method(request, timeout=left, metadata=self.terms.metadata())
            except grpc.RpcError as exc:
                pause = attempts.pause_s(exc, time.monotonic())
            time.sleep(pause)

    def pages(
        self,
        method: Callable[..., Any],
        request: Any,  # noqa: ANN401 - of any list
    ) -> Iterator[Any]:
        """Yield all pages of a list; the request's token is set here.

        Raises:
            CallFailed: as `call`.
        """
        while True:
            page = self.call(method, request)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token
