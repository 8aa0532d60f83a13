"""A resource of the API: its names, types and strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reserver_demo.apiserver.schema import DOCUMENT, Conformed, Schema, conform
from reserver_demo.apiserver.selectors import Fields
from reserver_demo.apiserver.status import Json
from reserver_demo.apiserver.strategy import Strategy
from reserver_demo.apiserver.structural import fill_in, pruned
from reserver_demo.apiserver.validation import Rule, dns_subdomain


def reader(path: str, default: str = "") -> Callable[[Json], str]:
    """Return a reader of a field for field selectors."""
    steps = path.split(".")

    def read(content: Json) -> str:
        value: object = content
        for step in steps:
            value = value.get(step, default) if isinstance(value, dict) else default
        return str(value).lower() if isinstance(value, bool) else str(value)

    return read


def readers(*paths: str) -> dict[str, Callable[[Json], str]]:
    """Return readers of fields, including the name."""
    return {path: reader(path) for path in ("metadata.name", *paths)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource of the API.

    Attributes:
        kind: its kind.
        plural: its name in paths.
        group: its API group; empty for the core group.
        version: its API version.
        namespaced: whether its objects live in namespaces.
        short_names: its short names for kubectl.
        categories: its categories for kubectl.
        schema: its type in the OpenAPI document; None for a custom resource.
        structure: the schema of its CRD.
        printer_columns: the columns of its CRD.
        name_rule: the rule for names of objects.
        fields: the fields for field selectors, with their readers.
        strategy: the strategy for writes.
        actions: the subresources for POST, with the posted kind.
    """

    kind: str
    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    schema: str | None = None
    structure: Schema = field(default_factory=dict)
    printer_columns: tuple[Json, ...] = ()
    name_rule: Rule = dns_subdomain
    fields: Fields = field(default_factory=lambda: readers("metadata.namespace"))
    strategy: Strategy = field(default_factory=Strategy)
    actions: Mapping[str, str] = field(default_factory=dict)

    @property
    def api_version(self) -> str:
        """Group and version, in the form of an object's apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The plural with its group, for messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """The kind with its group, for messages."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def typed(self) -> Schema:
        """The schema of its objects."""
        schema: Schema = self.structure if self.schema is None else DOCUMENT[self.schema]
        return schema

    def decode(self, value: Json) -> Conformed:
        """Decode an object, and add defaults.

        Raises:
            MismatchError: a value has the wrong type.
        """
        conformed = self.typed_only(value)
        fill_in(conformed.value, self.structure)
        return conformed

    def typed_only(self, value: Json) -> Conformed:
        """Decode an object without adding defaults.

        Raises:
            MismatchError: a value has the wrong type.
        """
        conformed = conform(self.schema, value)
        if self.schema is not None:
            return conformed
        unknown = list(conformed.unknown)
        kept = pruned(conformed.value, self.structure, "", unknown)
        return Conformed(kept, tuple(unknown))

    @property
    def has_status(self) -> bool:
        """Whether it has a status subresource."""
        return self.strategy.prepare_status is not None
