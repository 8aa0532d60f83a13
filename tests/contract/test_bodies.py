"""Bodies in the encodings that clients choose: YAML, and the protobuf of `kubectl create`."""

from __future__ import annotations

import pytest

from tests.contract.api import Api

YAML, PROTOBUF = "application/yaml", "application/vnd.kubernetes.protobuf"


async def test_an_object_is_created_from_yaml(api: Api) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: 'true'\n"
    made = await api.send("POST", api.path("configmaps"), text, media=YAML)
    assert (made.status, made.body["data"]) == (201, {"a": "true"})


@pytest.mark.parametrize("body", [b"a: [", b"- 1", b"\xff"])
async def test_what_is_no_object_in_yaml_is_a_bad_request(api: Api, body: bytes) -> None:
    answer = await api.send("POST", api.path("configmaps"), body, media=YAML)
    assert answer.outline == (400, "BadRequest")


def _field(number: int, value: bytes) -> bytes:
    """A field of a protobuf message, with a length of one byte."""
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def _entry(number: int, key: bytes, value: bytes) -> bytes:
    return _field(number, _field(1, key) + _field(2, value))


def _encoded(kind: bytes, raw: bytes) -> bytes:
    return b"k8s\x00" + _field(1, _field(1, b"v1") + _field(2, kind)) + _field(2, raw)


async def test_a_configmap_is_created_from_protobuf(api: Api) -> None:
    labels = _entry(11, b"app", b"web") + _entry(11, b"empty", b"")
    raw = (
        _field(1, _field(1, b"one") + _field(3, b"") + labels + b"\x42\x00")
        + _entry(2, b"a", b"b")
        + _entry(3, b"bytes", b"\xff\x00")
        + b"\x20\x01"
    )
    body = _encoded(b"ConfigMap", raw)
    made = await api.send("POST", api.path("configmaps"), body, media=PROTOBUF)
    assert made.status == 201, made.body
    assert made.body["metadata"]["labels"] == {"app": "web", "empty": ""}
    assert (made.body["data"], made.body["binaryData"]) == ({"a": "b"}, {"bytes": "/wA="})
    assert made.body["immutable"] is True


async def test_a_namespace_is_created_from_protobuf(api: Api) -> None:
    name = f"{api.namespace}-more".encode()
    body = _encoded(b"Namespace", _field(1, _field(1, name)) + _field(2, b"") + _field(3, b""))
    made = await api.send("POST", "/api/v1/namespaces", body, media=PROTOBUF)
    assert (made.status, made.body["status"]) == (201, {"phase": "Active"})
    await api.delete(f"/api/v1/namespaces/{api.namespace}-more")


@pytest.mark.parametrize("body", [b"", b"{}", b"k8s\x00\xff", _encoded(b"Pod", b"\x0a")])
async def test_what_is_no_protobuf_of_that_kind_is_a_bad_request(api: Api, body: bytes) -> None:
    answer = await api.send("POST", api.path("configmaps"), body, media=PROTOBUF)
    assert answer.status == 400
