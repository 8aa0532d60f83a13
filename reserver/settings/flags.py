"""A flag, declared once: as a field of the dataclass that holds what was given.

From the field follow the flag's name, type and default, from its `Flag` all else that `--help`, the
environment, docs/cli-reference.md and messages say (docs/adr/0026). What several flags take is read
and checked here, too: addresses and names.
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
"""Bound on a duration: ten years; the clocks that it is added to stay within their years."""


class Stage(StrEnum):
    """The maturity of a feature, in the words of Kubernetes' feature gates."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = "GA"


@dataclass(frozen=True, slots=True)
class InFile:
    """The field of the configuration file that replaces a flag (`configuration.py`).

    Attributes:
        path: of the field, such as ``logging.level``.
        is_live: whether a change of the file takes effect without a restart.
        stage: of a feature gate; None of all else.
        keeps_flag: whether the flag stays beside it, and is not deprecated.
        read: returns the value of what is written, where that is no text, number or list.
        show: the reverse.
    """

    path: str
    _: KW_ONLY
    is_live: bool = False
    stage: Stage | None = None
    keeps_flag: bool = False
    read: Callable[[Any], Any] | None = None
    show: Callable[[Any], Any] | None = None


def staged(here: InFile | None, text: str) -> str:
    """Return a description that begins with the stage, if it is one of a feature gate."""
    return f"{here.stage}: {text}" if here and here.stage else text


@dataclass(frozen=True, slots=True)
class Flag:
    """The metadata of a flag: help, checks, names.

    Attributes:
        help: what it means, in a sentence.
        metavar: stands for its value in help; None for the type's own.
        in_environment: whether a variable may give it, too: RESERVER_ and its name.
        most: bound on a number, which is not negative then.
        least: bound on a number that has no other.
        read: returns the value of a text, given the flag's name; raises ConfigurationError.
        check: refuses a value, each of several, however it was given; raises ConfigurationError or
            InvalidInput.
        panel: under which heading help shows it; None for among the others.
        complete: returns what may stand for the value; None where nobody knows.
        path: where its value stands in a document; empty for under the field's own name.
        short: its short form, such as ``-n``; empty where it has none.
        in_file: the field of the configuration file that replaces the flag; None of one that stays.
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
    """Return the number of a percentage such as 80%; None for none, which sets no limit."""
    return None if text == NO_PERCENT else int(text.removesuffix("%"))


def check_percent(flag: str, text: str | None) -> None:
    """Refuse what is no percentage; nothing is given by None."""
    if text is None:
        return
    number = text.removesuffix("%")
    is_number = number != text and number.isascii() and number.isdecimal() and len(number) <= 3  # noqa: PLR2004 - 100
    if text != NO_PERCENT and not (is_number and 1 <= int(number) <= 100):  # noqa: PLR2004
        problem = f"{flag}: {text!r} is no percentage"
        raise ConfigurationError(f"{problem}; write 1% to 100%, or {NO_PERCENT}")


_ABOUT = "flag"


def flag(text: str, *, default: Any = None, **about: Any) -> Any:  # noqa: ANN401 - a field of any type
    """Return a field of a dataclass that is a flag; the other arguments are those of `Flag`."""
    return dataclasses.field(default=default, metadata={_ABOUT: Flag(text, **about)})


setting = partial(flag, in_environment=True)
"""A flag that a variable may give, too."""


class Declared(NamedTuple):
    """A field that is a flag.

    Attributes:
        field: its name.
        kind: its type, of each value where the flag may be repeated.
        default: its value where the flag is not given.
        is_repeated: whether the flag may be given more than once: the field is a tuple, of which
            the name is the plural of the flag's.
        flag: what else is said of it.
    """

    field: str
    kind: Any
    default: Any
    is_repeated: bool
    flag: Flag

    @property
    def name(self) -> str:
        """The flag, such as ``--bind-address``."""
        # A word of Python ends in an underscore.
        field = self.field.removesuffix("_")
        name = field.removesuffix("s") if self.is_repeated else field
        return f"--{name.replace('_', '-')}"

    @property
    def path(self) -> str:
        """Where its value stands in a document, such as ``placement.strategy``."""
        return self.flag.path or self.field

    @property
    def variable(self) -> str | None:
        """The variable of the environment that may give it, such as ``RESERVER_BIND_ADDRESS``."""
        name = self.name.removeprefix("--").removeprefix("reserver-").replace("-", "_").upper()
        return f"RESERVER_{name}" if self.flag.in_environment else None

    def read(self, given: Any) -> Any:  # noqa: ANN401 - of any type that flags have
        """Return the field's value for what was given: texts, where the flag has to be read."""
        read = self.flag.read
        if self.is_repeated:
            return tuple(given if read is None else (read(self.name, each) for each in given))
        if read is None:
            return given
        return read(self.name, given) if given else self.default

    def check(self, value: Any) -> None:  # noqa: ANN401 - as above
        """Refuse a value of the field that cannot work, with the errors of `Flag.check`."""
        if self.flag.check is not None:
            for each in value if self.is_repeated else (value,):
                self.flag.check(self.name, each)


def declared(group: Any) -> Iterator[Declared]:  # noqa: ANN401 - a dataclass, or one of its objects
    """Yield the fields of a dataclass that are flags."""
    owner = group if isinstance(group, type) else type(group)
    kinds = get_type_hints(owner)
    for field in dataclasses.fields(owner):
        if about := field.metadata.get(_ABOUT):
            kind = kinds[field.name]
            yield Declared(field.name, kind, field.default, get_origin(kind) is tuple, about)


def parse_address(flag: str, text: str) -> tuple[str, int]:
    """Return IP address and port of ``ADDRESS:PORT``, the address of IPv6 in brackets.

    Raises:
        ConfigurationError: it is not of that form.
    """
    address, colon, port = text.rpartition(":")
    if not (colon and port.isascii() and port.isdecimal() and int(port[:6]) <= LAST_PORT):
        remedy = f"write ADDRESS:PORT, e.g. 127.0.0.1:{text if text.isdecimal() else 9443}"
        raise ConfigurationError(f"{flag}: {text!r} is not an address; {remedy}")
    return address.removeprefix("[").removesuffix("]"), int(port)


def parse_ip(flag: str, text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an IP address.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        return ipaddress.ip_address(text)
    except ValueError as exc:
        problem = f"{flag}: {text!r} is not an IP address"
        raise ConfigurationError(f"{problem}; write 127.0.0.1 or ::1") from exc


def parse_seconds(flag: str, text: str) -> float:
    """Return a duration such as ``5m`` in seconds.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        return parse_duration(text)
    except InvalidInput as exc:
        raise ConfigurationError(str(exc.under(flag))) from exc


def check_duration(flag: str, seconds: float) -> None:
    """Refuse a duration that nobody waits for."""
    if seconds > _LONGEST_S:
        problem = f"{seconds:.0f} seconds are longer than ten years"
        raise ConfigurationError(f"{flag}: {problem}; write a shorter duration, or 0")


def check_host(flag: str, address: tuple[str, int] | None) -> None:
    """Refuse an address that is not one of IP."""
    if address is not None:
        parse_ip(flag, address[0])


def check_name(flag: str, name: str) -> None:
    """Refuse what no object of Kubernetes can be called."""
    names.check_subdomain(name, flag, "a name of Kubernetes")


def check_given(flag: str, name: str) -> None:
    """Refuse a name without characters."""
    if not name:
        raise ConfigurationError(f"{flag}: is empty; write a name, or leave the flag out")
