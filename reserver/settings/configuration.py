"""ReserverConfiguration: the settings of `reserver serve` in one document, read strictly.

The document has the fields of `Settings` with an `InFile`. Its types, its schema
(`hack/configuration_schema.py`) and the answer of `/configz` follow from these declarations. The
flags of these fields are deprecated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import msgspec

from reserver.cluster.quantity import shorten
from reserver.errors import ConfigurationError, InvalidInput
from reserver.settings import strict_yaml
from reserver.settings.flags import Declared, InFile, Stage, declared
from reserver.settings.serve import Settings
from reserver.settings.struct_reader import Stray, Walk

API_VERSION = "reserver.io/v1alpha1"
KIND = "ReserverConfiguration"

_GATES = "featureGates"

MOST_ITEMS = 1000
"""Bound on a list of names."""

_MOST_PROBLEMS = 10
"""Most problems of a file that are reported; later ones are often consequences."""

Values = Mapping[str, Any]
"""Values by the field of `Settings`."""


class ConfigurationField(NamedTuple):
    """A field of the document, and the flag that it replaces."""

    of: Declared
    here: InFile

    @property
    def path(self) -> str:
        """The path of the field, such as ``logging.level``."""
        return self.here.path

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    def read(self, written: Any) -> Any:  # noqa: ANN401 - of any type that fields have
        """Return the setting's value; raises ConfigurationError or InvalidInput."""
        if self.here.stage is Stage.GA and written is False:
            problem = f"cannot set feature gate {self.name} to false, feature is locked to true"
            raise InvalidInput(_GATES, problem, "remove it")
        if self.here.read is not None:
            try:
                value = self.here.read(written)
            except InvalidInput as exc:
                raise exc.under(self.path) from exc
        elif self.of.is_repeated:
            value = tuple(self._read_text(each) for each in written)
        else:
            value = self._read_text(written)
        if self.of.flag.check is not None:
            for each in value if self.of.is_repeated else (value,):
                self.of.flag.check(self.path, each)
        return value

    def _read_text(self, written: Any) -> Any:  # noqa: ANN401 - as above
        read = self.of.flag.read
        return written if read is None else read(self.path, written)

    def show(self, value: Any) -> Any:  # noqa: ANN401 - as above
        """Return a setting's value in the form of the document."""
        if self.here.show is not None:
            return self.here.show(value)
        if isinstance(value, tuple):
            return ["/".join(each) if isinstance(each, tuple) else each for each in value]
        return show_duration(value) if isinstance(value, float) else value

    @property
    def kind(self) -> Any:  # noqa: ANN401 - a type
        """The type of the field in the document."""
        if self.here.read is not None:
            return Any
        written = self.of.kind if self.of.flag.read is None else str
        return tuple[str, ...] if self.of.is_repeated else written


def show_duration(seconds: float) -> str:
    """Return seconds as a duration such as ``5m``."""
    for unit, size in (("h", 3600), ("m", 60), ("s", 1)):
        if seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.3f}s"


@cache
def entries() -> tuple[ConfigurationField, ...]:
    """Return the fields of the document."""
    return tuple(
        ConfigurationField(each, each.flag.in_file)
        for each in declared(Settings)
        if each.flag.in_file
    )


@cache
def _document() -> type[Any]:
    """Return the struct of the document, with the document's names of fields."""
    top: dict[str, Any] = {"apiVersion": str, "kind": str}
    groups: dict[str, dict[str, Any]] = {}
    for entry in entries():
        group, dot, name = entry.path.rpartition(".")
        (groups.setdefault(group, {}) if dot else top)[name] = entry.kind
    for group, fields in groups.items():
        top[group] = _struct(group, fields)
    return _struct(KIND, top)


def _struct(name: str, fields: Mapping[str, Any]) -> type[Any]:
    return msgspec.defstruct(name, [(each, kind | None, None) for each, kind in fields.items()])


def parse(raw: bytes) -> Values:
    """Return the values of a document.

    Raises:
        ConfigurationError: the document is invalid; one line for each problem, with the field, the
            value and the remedy.
    """
    try:
        document, has_more = strict_yaml.parse(raw)
        if has_more:
            raise InvalidInput("", "a second document follows", "write one")
        _check_kind(document)
    except InvalidInput as exc:
        raise ConfigurationError(str(exc)) from exc
    walk = Walk({})
    written = walk.read(document, _document())
    problems = [str(each) for each in (*walk.problems, *map(_refused, walk.strays))]
    values: dict[str, Any] = {}
    for entry, given in _given(written):
        try:
            values[entry.of.field] = entry.read(given)
        except (InvalidInput, ConfigurationError) as exc:
            problems.append(str(exc))
    if problems:
        raise ConfigurationError("\n".join(problems[:_MOST_PROBLEMS]))
    return values


def _refused(stray: Stray) -> InvalidInput:
    group, _, name = stray.path.partition(".")
    if group == _GATES and name:
        return InvalidInput(group, f"unrecognized feature gate: {name}", stray.remedy)
    return InvalidInput(stray.path, "is not a field", stray.remedy)


def _check_kind(document: object) -> None:
    if not isinstance(document, dict):
        problem = "is empty" if document is None else "is not a mapping"
        raise InvalidInput("", problem, f"begin with apiVersion: {API_VERSION} and kind: {KIND}")
    for field, known in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(field) != known:
            found = shorten(repr(document[field])) if field in document else "is missing"
            problem = found if field not in document else f"{found} is not read"
            raise InvalidInput(field, problem, f"write {known}")


def _given(written: Any) -> Iterator[tuple[ConfigurationField, Any]]:  # noqa: ANN401 - a struct of `_document`
    """Yield the fields of a document with their values."""
    for entry in entries() if written is not None else ():
        value = written
        for name in entry.path.split("."):
            value = getattr(value, name, None)
        if value is None:
            continue
        if isinstance(value, tuple) and len(value) > MOST_ITEMS:
            raise ConfigurationError(
                f"{entry.path}: {len(value)} items are too many; write {MOST_ITEMS} at most"
            )
        yield entry, value


def merged(flags: Settings, values: Values) -> Settings:
    """Return the settings of flags and file.

    Args:
        flags: the settings from the command line and the environment.
        values: the values of the file; absent fields have their defaults.

    Raises:
        ConfigurationError: a flag and a field contradict each other, or settings exclude each
            other.
    """
    settings = {}
    for entry in entries():
        name = entry.of.field
        if name not in flags.given:
            settings[name] = values.get(name, entry.of.default)
        elif name in values:
            _check_same(entry, getattr(flags, name), values[name])
    whole = replace(flags, **settings)
    whole.check_together()
    return whole


def _check_same(entry: ConfigurationField, given: Any, here: Any) -> None:  # noqa: ANN401 - as `ConfigurationField.read`
    """Refuse a flag and a field that contradict each other."""
    try:
        given = entry.show(given)
    except InvalidInput as exc:
        raise ConfigurationError(f"{entry.of.name}: {exc}") from exc
    here = entry.show(here)
    if given != here:
        raise ConfigurationError(
            f"{entry.path}: {shorten(str(here))} contradicts {entry.of.name}, which is "
            f"{shorten(str(given))}; remove the flag, or its variable"
        )


class DifferingFields(NamedTuple):
    """The paths of fields with different values in two settings.

    Attributes:
        live: the fields that take effect at once.
        others: the fields that need a restart.
    """

    live: tuple[str, ...]
    others: tuple[str, ...]


def changes(before: Settings, after: Settings) -> DifferingFields:
    """Return the fields of the file whose values differ."""
    differing = [
        entry
        for entry in entries()
        if getattr(before, entry.of.field) != getattr(after, entry.of.field)
    ]
    live = tuple(entry.path for entry in differing if entry.here.is_live)
    return DifferingFields(live, tuple(entry.path for entry in differing if not entry.here.is_live))


def live(before: Settings, after: Settings) -> Settings:
    """Return `before` with the fields of `after` that take effect without a restart."""
    names = (entry.of.field for entry in entries() if entry.here.is_live)
    return replace(before, **{name: getattr(after, name) for name in names})


class FeatureGate(NamedTuple):
    """A feature gate: its maturity, and whether it is enabled."""

    name: str
    stage: Stage
    is_enabled: bool


def feature_gates(settings: Settings) -> Iterator[FeatureGate]:
    """Yield the feature gates of settings."""
    for entry in entries():
        if entry.here.stage is not None:
            yield FeatureGate(entry.name, entry.here.stage, getattr(settings, entry.of.field))


def document(settings: Settings) -> dict[str, Any]:
    """Return settings as a document with all fields, including defaults."""
    shown: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    for entry in entries():
        group, dot, name = entry.path.rpartition(".")
        place = shown.setdefault(group, {}) if dot else shown
        place[name] = entry.show(getattr(settings, entry.of.field))
    return shown
