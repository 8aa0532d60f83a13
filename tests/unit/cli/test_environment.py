"""Variables that begin with RESERVER_ are settings or errors; variables of Services are neither."""

from __future__ import annotations

import pytest

from reserver.cli.serve import of_services, unknown_variable

OF_A_SERVICE = {
    "RESERVER_PORT": "tcp://10.0.0.7:80",
    "RESERVER_SERVICE_HOST": "10.0.0.7",
    "RESERVER_SERVICE_PORT": "80",
    "RESERVER_SERVICE_PORT_GRPC": "9443",
    "RESERVER_HTTP_PORT": "udp://10.0.0.7:80",
    "RESERVER_HTTP_PORT_80_TCP": "tcp://10.0.0.7:80",
    "RESERVER_HTTP_PORT_80_TCP_ADDR": "10.0.0.7",
    "RESERVER_HTTP_PORT_80_TCP_PROTO": "tcp",
    "RESERVER_HTTP_PORT_80_TCP_PORT": "80",
}
"""The variables that Kubernetes adds for Services `reserver` and `reserver-http`."""


def test_variables_of_services_are_told_from_settings() -> None:
    settings = {"RESERVER_HTTP_PORT": "9440", "OTHER_PORT": "tcp://10.0.0.7:80", "HOME": "/"}
    assert set(of_services(OF_A_SERVICE)) == set(OF_A_SERVICE)
    assert not set(of_services(settings))


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("RESERVER_DEFAULT_QUTOA", "did you mean RESERVER_DEFAULT_QUOTA?"),
        ("RESERVER_LOG_LEVLE", "did you mean RESERVER_LOG_LEVEL?"),
        ("RESERVER_X", "remove it; see reserver serve --help"),
    ],
)
def test_a_variable_that_is_no_setting_is_refused(name: str, remedy: str) -> None:
    said = unknown_variable({"HOME": "/", "RESERVER_CRD": "1", name: ""})
    assert said == f"{name}: is not a setting of Reserver; {remedy}"


@pytest.mark.parametrize("name", ["RESERVER_TOKEN", "RESERVER_ADDRESS", "RESERVER_KUBECONFIG"])
def test_a_variable_of_another_command_is_none_of_them(name: str) -> None:
    assert not unknown_variable({name: "", "RESERVER_BIND_ADDRESS": "::1"})
