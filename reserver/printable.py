"""Text from other clients, made safe to show: invisible characters are escaped."""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: they control a terminal, or break a line.
    # Characters that reverse or break text, or have no width.
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ud800-\udfff]"  # Lone surrogates: UTF-8 has none.
)
"""Control characters (Cc), and those with Default_Ignorable_Code_Point or Bidi_Control."""


def printable(text: str, keep: str = "") -> str:
    r"""Return text with invisible characters escaped, such as ``\x1b`` and ``\u202e``.

    Escaping escaped text changes nothing.

    Args:
        text: text from any client.
        keep: the control characters that the layout needs, such as line feeds.
    """
    return _HIDDEN.sub(lambda found: _escape(found[0], keep), text)


def is_printable(text: str, keep: str = "") -> bool:
    """Return whether a text has no invisible character; the arguments are as above."""
    for layout in keep:
        text = text.replace(layout, "")
    return _HIDDEN.search(text) is None


def _escape(character: str, keep: str) -> str:
    return character if character in keep else character.encode("unicode_escape").decode()
