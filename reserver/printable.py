"""Text that somebody else wrote, made safe to show: invisible characters are escaped."""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: a terminal obeys them, or they break a line.
    # What turns text around, breaks it, or has no width.
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ud800-\udfff]"  # Lone surrogates: UTF-8 has none.
)
"""Control characters (Cc), and what is Default_Ignorable_Code_Point in Unicode, or Bidi_Control."""


def printable(text: str, keep: str = "") -> str:
    r"""Return text with escapes, as ``\x1b`` and ``\u202e``, for all that is not seen.

    Escaping twice changes nothing more.

    Args:
        text: whatever somebody wrote.
        keep: the control characters that the layout needs, as line feeds.
    """
    return _HIDDEN.sub(lambda found: _escape(found[0], keep), text)


def is_printable(text: str, keep: str = "") -> bool:
    """Return whether all of a text is seen as it is written; the arguments are as above."""
    return all(found[0] in keep for found in _HIDDEN.finditer(text))


def _escape(character: str, keep: str) -> str:
    return character if character in keep else character.encode("unicode_escape").decode()
