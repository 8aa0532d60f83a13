"""Writes the schema of ReserverConfiguration, and its table in docs/configuration.md.

A unit test compares the committed files with the settings.
"""

from __future__ import annotations

import json
from pathlib import Path

from hack import configuration_schema
from reserver.settings.configuration import ConfigurationField, document, entries
from reserver.settings.serve import Settings

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/configuration.md"
SCHEMA = ROOT / "reserver/settings/configuration.schema.json"

_BEGIN = "<!-- fields: written by `make cli-reference` -->\n"
_END = "<!-- end of fields -->\n"


def schema() -> str:
    """Return the schema as text."""
    return json.dumps(configuration_schema.schema(), indent=2) + "\n"


def page() -> str:
    """Return the page, with the fields as they are declared."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    after = rest.partition(_END)[2]
    rows = ["| field | meaning | default | a change | instead of |", "|---|---|---|---|---|"]
    rows += [_row(entry) for entry in entries() if not entry.here.stage]
    gates = ["| feature gate | meaning | stage | default | instead of |", "|---|---|---|---|---|"]
    gates += [_gate(entry) for entry in entries() if entry.here.stage]
    fields = "\n".join([*rows, "", *gates, ""])
    return f"{before}{_BEGIN}\n{fields}\n{_END}{after}"


def _row(entry: ConfigurationField) -> str:
    when = "at once" if entry.here.is_live else "restart"
    return f"| `{entry.path}` | {_text(entry)} | {_default(entry)} | {when} | `{entry.of.name}` |"


def _gate(entry: ConfigurationField) -> str:
    name, stage = entry.path.partition(".")[2], str(entry.here.stage).lower()
    return f"| `{name}` | {_text(entry)} | {stage} | {_default(entry)} | `{entry.of.name}` |"


def _default(entry: ConfigurationField) -> str:
    if entry.path == "defaultQuota":
        return "[below](#the-default-quota)"
    if default := configuration_schema.default_in_words(entry):
        return default
    value = document(Settings())
    for name in entry.path.split("."):
        value = value[name]
    return f"`{json.dumps(value)}`"


def _text(entry: ConfigurationField) -> str:
    return configuration_schema.description(entry).replace("|", "\\|")


def main() -> None:
    """Write both."""
    SCHEMA.write_text(schema())
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
