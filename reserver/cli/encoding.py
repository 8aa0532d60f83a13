"""Text in a terminal that is not UTF-8: no command ends in a traceback for a character."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Sequence

_HANDLER = "reserver"
_CODEC = "reserver_ascii"
"""ASCII by a name of our own: into a stream of that name itself Click writes UTF-8."""

_ASCII = str.maketrans("█▒░·×…✓✗│─━┃╌⠋", "#=..x~+x|--|-*")
"""What stands for our own characters: each has one that is as wide."""


def _substitute(error: UnicodeError) -> tuple[str, int]:
    """Return what is written instead of characters that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    plain = text.translate(_ASCII)
    return plain.encode("ascii", "backslashreplace").decode(), error.end


def settle() -> None:
    """Have standard output and standard error take every character."""
    codecs.register_error(_HANDLER, _substitute)
    codecs.register(_codec)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            is_ascii = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding=_CODEC if is_ascii else None, errors=_HANDLER)


def _codec(name: str) -> codecs.CodecInfo | None:
    if name != _CODEC:
        return None
    found = codecs.lookup("ascii")
    return codecs.CodecInfo(
        found.encode,
        found.decode,
        incrementalencoder=found.incrementalencoder,
        incrementaldecoder=found.incrementaldecoder,
        name=_CODEC,
    )


def arguments(given: Sequence[str]) -> list[str]:
    """Return the arguments of a command as text, whatever the terminal's encoding is.

    Raises:
        ValueError: one is not UTF-8; the error says which.
    """
    read = []
    for each in given:
        try:
            read.append(os.fsencode(each).decode())
        except UnicodeError as exc:
            shown = os.fsencode(each).decode(errors="backslashreplace")
            raise ValueError(f"{shown}: is not UTF-8; write it in UTF-8") from exc
    return read
