"""Every way to say where the API server is and who we are to it."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from reserver.errors import ConfigurationError
from reserver.k8s import credentials
from reserver.k8s.credentials import Credentials
from tests.waiting import until, until_answered


def _kubeconfig(path: Path, user: dict[str, Any], **cluster: Any) -> Path:
    cluster = {"server": "http://127.0.0.1:8001", **cluster}
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return path


async def test_a_token_of_the_kubeconfig_is_shown(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path / "k", {"token": "secret"}, server="http://127.0.0.1:8001/")
    access = await credentials.load(path)
    assert access.server == "http://127.0.0.1:8001"
    assert access.source == f"kubeconfig {path}"
    assert await access.authorization() == "Bearer secret"


async def test_a_token_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    path = _kubeconfig(tmp_path / "k", {"tokenFile": str(tmp_path / "token")})
    assert await (await credentials.load(path)).authorization() == "Bearer from-a-file"


async def test_an_exec_plugin_is_run_for_its_token(tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": "made"}}
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    user = {"exec": {"apiVersion": version, "command": str(plugin), "interactiveMode": "Never"}}
    access = await credentials.load(_kubeconfig(tmp_path / "k", user))
    assert await access.authorization() == "Bearer made"


async def test_without_credentials_nothing_is_shown(tmp_path: Path) -> None:
    access = await credentials.load(_kubeconfig(tmp_path / "k", {}))
    assert await access.authorization() is None
    assert access.tls is None


async def test_a_context_needs_no_user(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path / "k", {})
    path.write_text(path.read_text().replace('"user": "u"', '"user": ""'))
    access = await credentials.load(path)
    assert await access.authorization() is None


async def renewed(access: Credentials, expected: str | None) -> None:
    """Return once the credentials are these, while they are renewed."""
    renewing = asyncio.create_task(access.renew())

    async def is_renewed() -> bool:
        assert not renewing.done()
        return await access.authorization() == expected

    await until_answered(is_renewed)
    renewing.cancel()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "LOOK_EVERY_S", 0.001)


@pytest.mark.usefixtures("at_once")
async def test_a_kubeconfig_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path / "k", {"token": "old"})
    access = await credentials.load(path)
    _kubeconfig(tmp_path / "new", {"token": "newer"}).replace(path)
    await renewed(access, "Bearer newer")
    _kubeconfig(path, {"token": "written in place"})
    await renewed(access, "Bearer written in place")


@pytest.mark.usefixtures("at_once")
async def test_a_token_file_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    access = await credentials.load(_kubeconfig(tmp_path / "k", {"tokenFile": "token"}))
    assert await access.authorization() == "Bearer old"
    token.write_text("newer")
    await renewed(access, "Bearer newer")


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("broken", [None, "", "{", "[]", "apiVersion: v2"])
async def test_a_kubeconfig_that_broke_changes_nothing_until_it_is_whole(
    tmp_path: Path, broken: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _kubeconfig(tmp_path / "k", {"token": "old"})
    access = await credentials.load(path)
    renewing = asyncio.create_task(access.renew())
    if broken is None:
        path.unlink()
    else:
        path.write_text(broken)
    await until(lambda: "the former stay" in capsys.readouterr().out)
    assert await access.authorization() == "Bearer old"
    renewing.cancel()
    _kubeconfig(path, {"token": "whole"})
    await renewed(access, "Bearer whole")


async def test_the_service_account_is_used_inside_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("of-the-pod\n")
    (tmp_path / "ca.crt").write_text(_CERTIFICATE)
    monkeypatch.setattr(credentials, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    access = await credentials.load(None)
    assert access.server == "https://10.0.0.1:443"
    assert access.source == "in-cluster service account"
    assert access.tls is not None
    assert await access.authorization() == "Bearer of-the-pod"
    (tmp_path / "token").write_text("replaced\n")
    assert await access.authorization() == "Bearer of-the-pod"
    monkeypatch.setattr(credentials, "_RENEWAL_S", 0)
    assert await access.authorization() == "Bearer replaced"
    (tmp_path / "ca.crt").unlink()
    with pytest.raises(ConfigurationError, match=r"service account cannot be used: .*No such file"):
        await credentials.load(None)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        ("", "cannot be used"),
        ("hello", "cannot be used"),
        ("[]", "cannot be used"),
        ("a: b: c", "cannot be used"),
        ("\x00\x01", "cannot be used"),
        ('{"clusters": [], "contexts": [], "current-context": "x"}', "cannot be used"),
    ],
    ids=["missing", "empty", "text", "list", "broken", "binary", "no-context"],
)
async def test_a_kubeconfig_that_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, content: str | None, words: str
) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError) as caught:
        await credentials.load(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


_CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIUT6Ba/v8hm4cY8O3tTUxLOSbOeWEwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjEwMDMwMzdaGA8yMTI2MTAyODAwMzAz
N1owDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABG7m
AmV4YH8gqeXWOpjZXoUaFgijNEIqJjS9D+jPym3jrPmrLsT77GuVSzCYTGDp0uSu
ZrctRA2At4Cf+UGc4vWjUzBRMB0GA1UdDgQWBBR54oVShK6S3U8VlT7Jj555TErv
CTAfBgNVHSMEGDAWgBR54oVShK6S3U8VlT7Jj555TErvCTAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIQCzw90ECP3a5I+IxXBKWhmjAoASFTSW0FKF
CB9k4MWmhQIgbPwNtx9lLcZN8O28iQJKYgo49mj/FUQ42QGmhPJOWYE=
-----END CERTIFICATE-----
"""
