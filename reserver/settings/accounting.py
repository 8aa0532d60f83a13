"""What is counted, noticed and priced of holds: a part of the settings of `reserver serve`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from reserver.settings.flags import InFile, check_percent, setting
from reserver.settings.listening import Listening
from reserver.stores.codec import prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting(Listening):
    """How the use of holds is judged and priced."""

    warn_use_below: Annotated[
        str,
        setting(
            "The share of a hold, such as 20%, below which its use in 24 hours is reported; none: "
            "never.",
            metavar="PERCENT",
            check=check_percent,
            in_file=InFile("warnUseBelow", is_live=True),
        ),
    ] = "20%"
    prices: Annotated[
        str,
        setting(
            "What an hour of a core, a GiB or a piece costs, such as cpu=0.03,currency=EUR.",
            metavar="TABLE",
            check=prices.check,
            in_file=InFile("prices", is_live=True, read=prices.read_table, show=prices.show_table),
        ),
    ] = prices.NONE
