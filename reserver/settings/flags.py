"""Flags, each declared once as a field of a dataclass, and the parsers of their values.

The field defines the flag's name, type and default; its `Flag` defines its help, its variable of
the environment, its checks and its entry in docs/cli-reference.md (docs/adr/0026). This module also
parses and checks values for several flags: addresses, durations and names.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple, get_origin, get_type_hints

from reserver.errors import ConfigurationError, InvalidInput
from reserver.k8s.objects import names
from reserver.k8s.objects.times import parse_duration

LAST_PORT = 65535

_LONGEST_S = 3660 * 86_400.0
"""Bound on a duration, in seconds: ten years, so that times stay within the range of datetime."""


class Stage(StrEnum):
    """The maturity of a feature, as in Kubernetes' feature gates."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = "GA"


@dataclass(frozen=True, slots=True)
class InFile:
    """The field of the configuration file that replaces a flag (`configuration.py`).

    Attributes:
        path: the path of the field, such as ``logging.level``.
        is_live: whether a change of the file takes effect without a restart.
        stage: the stage of a feature gate; None for any other field.
        keeps_flag: whether the flag is not deprecated.
        read: returns the value of a field that is neither a text, a number nor a list.
        show: the reverse of `read`.
    """

    path: str
    _: KW_ONLY
    is_live: bool = False
    stage: Stage | None = None
    keeps_flag: bool = False
    read: Callable[[Any], Any] | None = None
    show: Callable[[Any], Any] | None = None


def staged(here: InFile | None, text: str) -> str:
    """Return a description, prefixed by the stage of a feature gate."""
    return f"{here.stage}: {text}" if here and here.stage else text


@dataclass(frozen=True, slots=True)
class Flag:
    """The metadata of a flag: help, checks, names.

    Attributes:
        help: the description, one sentence.
        metavar: the placeholder of the value in help; None for the default of the type.
        in_environment: whether the variable RESERVER_NAME may set it, too.
        most: the upper bound of a number, whose lower bound is then 0.
        least: the lower bound of a number without `most`.
        read: parses a text, given the flag's name; raises ConfigurationError.
        check: refuses an invalid value, or item of a list; raises ConfigurationError or
            InvalidInput.
        panel: the heading in help; None for the default one.
        complete: returns completions of the value; None without completions.
        path: the path of the value in a document; empty for the field's own name.
        short: the short form, such as ``-n``; empty without one.
        in_file: the field of the configuration file that replaces the flag; None without one.
    """

    help: str
    _: KW_ONLY
    metavar: str | None = None
    in_environment: bool = False
    most: int | None = None
    least: int | None = None
    read: Callable[[str, str], Any] | None = None
    check: Callable[[str, Any], None] | None = None
    panel: str | None = None
    complete: Callable[..., list[str]] | None = None
    path: str = ""
    short: str = ""
    in_file: InFile | None = None


NO_PERCENT = "none"


def read_percent(text: str) -> int | None:
    """Return the number of a percentage such as 80%; None for `none`, which sets no limit."""
    return None if text == NO_PERCENT else int(text.removesuffix("%"))


def check_percent(flag: str, text: str | None) -> None:
    """Refuse a text that is not a percentage; None, an absent flag, is valid."""
    if text is None:
        return
    number = text.removesuffix("%")
    is_number = number != text and number.isascii() and number.isdecimal() and len(number) <= 3  # noqa: PLR2004 - 100
    if text != NO_PERCENT and not (is_number and 1 <= int(number) <= 100):  # noqa: PLR2004
        problem = f"{flag}: {text!r} is no percentage"
        raise ConfigurationError(f"{problem}; write 1% to 100%, or {NO_PERCENT}")


_ABOUT = "flag"


def flag(text: str, *, default: Any = None, **about: Any) -> Any:  # noqa: ANN401 - a field of any type
    """Return a dataclass field for a flag; the other arguments are attributes of `Flag`."""
    return dataclasses.field(default=default, metadata={_ABOUT: Flag(text, **about)})


setting = partial(flag, in_environment=True)
"""A flag that a variable of the environment may set, too."""


class Declared(NamedTuple):
    """A dataclass field for a flag.

    Attributes:
        field: the name of the field.
        kind: the type of the field.
        default: the value without the flag.
        is_repeated: whether the flag may be repeated: the field is then a tuple, and its name the
            plural of the flag's.
        flag: the metadata of the flag.
    """

    field: str
    kind: Any
    default: Any
    is_repeated: bool
    flag: Flag

    @property
    def name(self) -> str:
        """The flag, such as ``--bind-address``."""
        # A keyword of Python has an underscore at its end.
        field = self.field.removesuffix("_")
        name = field.removesuffix("s") if self.is_repeated else field
        return f"--{name.replace('_', '-')}"

    @property
    def path(self) -> str:
        """The path of the value in a document, such as ``placement.strategy``."""
        return self.flag.path or self.field

    @property
    def variable(self) -> str | None:
        """The variable of the environment, such as ``RESERVER_BIND_ADDRESS``; None without one."""
        name = self.name.removeprefix("--").removeprefix("reserver-").replace("-", "_").upper()
        return f"RESERVER_{name}" if self.flag.in_environment else None

    def read(self, given: Any) -> Any:  # noqa: ANN401 - of any type that flags have
        """Return the field's value for the values of the command line, parsed by `Flag.read`."""
        read = self.flag.read
        if self.is_repeated:
            return tuple(given if read is None else (read(self.name, each) for each in given))
        if read is None:
            return given
        return read(self.name, given) if given else self.default

    def check(self, value: Any) -> None:  # noqa: ANN401 - as above
        """Refuse an invalid value of the field, with the errors of `Flag.check`."""
        if self.flag.check is not None:
            for each in value if self.is_repeated else (value,):
                self.flag.check(self.name, each)


def declared(group: Any) -> Iterator[Declared]:  # noqa: ANN401 - a dataclass, or one of its objects
    """Yield the flags among the fields of a dataclass."""
    owner = group if isinstance(group, type) else type(group)
    kinds = get_type_hints(owner)
    for field in dataclasses.fields(owner):
        if about := field.metadata.get(_ABOUT):
            kind = kinds[field.name]
            yield Declared(field.name, kind, field.default, get_origin(kind) is tuple, about)


def parse_address(flag: str, text: str) -> tuple[str, int]:
    """Return IP address and port of ``ADDRESS:PORT``, with an IPv6 address in brackets.

    Raises:
        ConfigurationError: the text is not of that form.
    """
    address, colon, port = text.rpartition(":")
    if not (colon and port.isascii() and port.isdecimal() and int(port[:6]) <= LAST_PORT):
        remedy = f"write ADDRESS:PORT, e.g. 127.0.0.1:{text if text.isdecimal() else 9443}"
        raise ConfigurationError(f"{flag}: {text!r} is not an address; {remedy}")
    return address.removeprefix("[").removesuffix("]"), int(port)


def parse_ip(flag: str, text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the IP address of a text.

    Raises:
        ConfigurationError: the text is not an IP address.
    """
    try:
        return ipaddress.ip_address(text)
    except ValueError as exc:
        problem = f"{flag}: {text!r} is not an IP address"
        raise ConfigurationError(f"{problem}; write 127.0.0.1 or ::1") from exc


def parse_seconds(flag: str, text: str) -> float:
    """Return a duration such as ``5m`` in seconds.

    Raises:
        ConfigurationError: the text is not a duration.
    """
    try:
        return parse_duration(text)
    except InvalidInput as exc:
        raise ConfigurationError(str(exc.under(flag))) from exc


def check_duration(flag: str, seconds: float) -> None:
    """Refuse a duration longer than ten years."""
    if seconds > _LONGEST_S:
        problem = f"{seconds:.0f} seconds are longer than ten years"
        raise ConfigurationError(f"{flag}: {problem}; write a shorter duration, or 0")


def check_host(flag: str, address: tuple[str, int] | None) -> None:
    """Refuse an address whose host is not an IP address."""
    if address is not None:
        parse_ip(flag, address[0])


def check_name(flag: str, name: str) -> None:
    """Refuse an invalid name of a Kubernetes object."""
    names.check_subdomain(name, flag, "a name of Kubernetes")


def check_given(flag: str, name: str) -> None:
    """Refuse an empty name."""
    if not name:
        raise ConfigurationError(f"{flag}: is empty; write a name, or leave the flag out")
