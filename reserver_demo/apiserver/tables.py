"""Tables: the server-side columns that kubectl prints (`meta.k8s.io/v1` Table).

pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from reserver_demo.apiserver.columns import COLUMNS, NAME, PLAIN, Cell, Column, since
from reserver_demo.apiserver.jsonpath import first
from reserver_demo.apiserver.resource import Resource
from reserver_demo.apiserver.status import Json
from reserver_demo.apiserver.store import Stored
from reserver_demo.apiserver.workload_columns import WORKLOAD_COLUMNS


def table(
    resource: Resource, rows: Iterable[Stored], metadata: Json, now: datetime, include: str
) -> Json:
    """Return objects as a table; `include` is the part in each row: None, Metadata or Object."""
    columns = _columns(resource)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [
            {
                "name": column.name,
                "type": column.kind,
                "format": "name" if column.name == "Name" else "",
                "description": "",
                "priority": int(column.wide),
            }
            for column in columns
        ],
        "rows": [
            {
                "cells": [column.read(stored.content, now) for column in columns],
                "object": _included(resource, stored, include),
            }
            for stored in rows
        ],
    }


def _columns(resource: Resource) -> tuple[Column, ...]:
    if resource.printer_columns:
        return (NAME, *map(_printed, resource.printer_columns))
    return (COLUMNS | WORKLOAD_COLUMNS).get(resource.plural, PLAIN)


def _included(resource: Resource, stored: Stored, include: str) -> Json | None:
    if include == "None":
        return None
    if include == "Object":
        return {"kind": resource.kind, "apiVersion": resource.api_version, **stored.content}
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": stored.content["metadata"],
    }


def _printed(column: Json) -> Column:
    """Return a column of a CRD (customresource/tableconvertor)."""
    path, kind = column["jsonPath"], column["type"]

    def read(content: Json, now: datetime) -> Cell:
        value = first(content, path)
        if kind == "date":
            return since(str(value), now) if value else None
        return value if isinstance(value, str | int) else None

    return Column(column["name"], read, kind, wide=bool(column.get("priority")))
