"""Calls that are refused unread: calls that a web page can make, and calls for other hosts."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from reserver.http.connections import Hosts, refusal

HOSTS = Hosts.of("10.0.0.7", ["Reserver.reserver-system.svc"])
BODIES = {"/filter": 1000, "/bind": 100}
GO = {
    "Host": "127.0.0.1:9440",
    "User-Agent": "Go-http-client/1.1",
    "Content-Length": "100",
    "Content-Type": "application/json",
    "Accept-Encoding": "gzip",
}
"""The headers of kube-scheduler: pkg/scheduler/extender.go, and Go's net/http."""


def status(
    method: str = "POST", target: str = "/bind", *without: str, **changed: str
) -> HTTPStatus | None:
    headers = {name.lower(): value for name, value in GO.items()}
    for name in without:
        del headers[name.lower()]
    headers |= {name.replace("_", "-").lower(): value for name, value in changed.items()}
    refused = refusal(method, target, headers, HOSTS, BODIES)
    return refused.status if refused else None


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:9440",
        "127.8.9.10:1",
        "localhost",
        "LocalHost:9440",
        "[::1]",
        "[::1]:9440",
        "10.0.0.7:9440",
        "reserver.reserver-system.svc:9440",
        "RESERVER.reserver-system.svc",
    ],
)
def test_calls_for_our_hosts_are_read(host: str) -> None:
    assert HOSTS.have(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:9440",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1.nip.io:9440",
        "a.localhost",
        "localhost.",
        "reserver",
        "reserver.reserver-system.svc.evil.example",
        "10.0.0.8",
        "0.0.0.0",
        "[::]",
        "2130706433",
        "0x7f.1",
        "127.1",
        "0177.0.0.1",
        "[::ffff:10.0.0.9]",
        "[fe80::1%lo]",
        "127.0.0.1@evil.example",
        "evil.example#127.0.0.1",
        "127.0.0.1, evil.example",
        "127.0.0.1:evil",
        "127.0.0.1:",
        "127.0.0.1 ",
        "[127.0.0.1",
        "localhost\x00",
        "lоcalhost",  # noqa: RUF001 - a Cyrillic o
        "a" * 300,
    ],
)
def test_calls_for_other_hosts_are_refused(host: str) -> None:
    assert not HOSTS.have(host)
    assert status(Host=host) is HTTPStatus.MISDIRECTED_REQUEST


def test_a_listener_on_all_addresses_takes_calls_for_any_address_but_for_no_other_name() -> None:
    hosts = Hosts.of("0.0.0.0", [])
    assert hosts.have("10.1.2.3:9441")
    assert hosts.have("[fd00::1]:9441")
    assert not hosts.have("evil.example:9441")
    assert not hosts.have("reserver.reserver-system.svc:9441")


def test_what_kube_scheduler_and_probes_send_is_read() -> None:
    assert status() is None
    assert status("POST", "/filter", Content_Length="1000") is None
    assert status(Content_Type="application/json; charset=utf-8") is None
    assert status(Content_Type="Application/JSON") is None
    assert status("GET", "/readyz", "Content-Length", "Content-Type") is None


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text/plain",
        "text/plain; application/json",
        "text/plain;charset=application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json",
        "application/json, text/plain",
        "application/jsonp",
        "application/x-json",
        "application/*",
    ],
)
def test_what_a_page_may_send_without_asking_is_refused(kind: str) -> None:
    assert status(Content_Type=kind) is HTTPStatus.UNSUPPORTED_MEDIA_TYPE


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9440", ""])
@pytest.mark.parametrize("call", [("POST", "/bind"), ("GET", "/healthz"), ("OPTIONS", "/bind")])
def test_calls_of_pages_are_refused_whatever_they_are_from(
    origin: str, call: tuple[str, str]
) -> None:
    assert status(*call, Origin=origin) is HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("site", ["cross-site", "same-site", "same-origin"])
def test_what_a_browser_fetches_for_a_page_is_refused(site: str) -> None:
    assert status(Sec_Fetch_Site=site) is HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1/bind", "http://evil.example/bind", "*", "bind", "evil.example:80"]
)
def test_a_request_line_that_names_no_path_is_refused(target: str) -> None:
    assert status("POST", target) is HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize(
    ("target", "length", "expected"),
    [
        ("/bind", "101", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        ("/filter", "1001", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        ("/filter?verb=bind", "1", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        ("/filter/", "1", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        ("/healthz", "1", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        ("/healthz", "18446744073709551615", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        ("/bind", "0", None),
    ],
)
def test_a_body_is_taken_where_one_is_expected_and_no_larger(
    target: str, length: str, expected: HTTPStatus | None
) -> None:
    assert status("POST", target, Content_Length=length) is expected


@pytest.mark.parametrize("coding", ["chunked", "gzip, chunked", "identity"])
@pytest.mark.parametrize("target", ["/bind", "/healthz"])
def test_a_body_whose_length_is_not_said_is_refused(target: str, coding: str) -> None:
    refused = status("POST", target, "Content-Length", Transfer_Encoding=coding)
    assert refused is HTTPStatus.LENGTH_REQUIRED


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "x-gzip", "GZIP", "identity"])
@pytest.mark.parametrize("target", ["/filter", "/healthz"])
def test_a_body_that_would_have_to_be_inflated_is_refused(target: str, coding: str) -> None:
    refused = status("POST", target, Content_Encoding=coding)
    assert refused is HTTPStatus.UNSUPPORTED_MEDIA_TYPE


def test_a_refusal_says_what_to_do() -> None:
    refused = refusal("GET", "/healthz", {"host": "evil.example"}, HOSTS, BODIES)
    assert refused is not None
    assert "'evil.example' is not served here" in refused.message
    assert "--allowed-host" in refused.message
