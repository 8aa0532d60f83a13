"""Long lists, page by page: each page begins after the last name of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from reserver.errors import InvalidInput

DEFAULT_PAGE = 500
MOST_IN_PAGE = 1000

T = TypeVar("T")


class PageRequest(Protocol):
    """A request for a page."""

    page_size: int
    page_token: str


@dataclass(frozen=True, slots=True)
class PageToken:
    """The page that a client asks for.

    Attributes:
        after: the name before it; empty for the first.
        size: how many it may have.
    """

    after: str
    size: int

    @classmethod
    def of(cls, request: PageRequest) -> PageToken:
        """Return the page that a request is for.

        Raises:
            InvalidInput: its size is negative.
        """
        if request.page_size < 0:
            raise InvalidInput("pageSize", f"{request.page_size} is negative", "write 0 or more")
        return cls(request.page_token, min(request.page_size or DEFAULT_PAGE, MOST_IN_PAGE))

    def cut(self, items: Iterable[T], name: Callable[[T], str]) -> tuple[list[T], str]:
        """Return the items of the page, and the token of the next one, empty without one."""
        left = sorted((item for item in items if name(item) > self.after), key=name)
        page = left[: self.size]
        return page, name(page[-1]) if len(left) > self.size else ""
