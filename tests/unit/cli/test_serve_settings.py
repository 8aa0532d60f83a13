"""`reserver serve` reads the same settings without Typer as with Typer."""

from __future__ import annotations

import os
import re
from typing import Any
from unittest import mock

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from reserver.cli import serve
from reserver.cli.flag_groups import with_flags
from reserver.cli.serve import removed_setting
from reserver.settings.flags import declared
from reserver.settings.serve import Settings

FLAGS = {each.name: each for each in declared(Settings)}
VALUES = [
    ("--kubeconfig", "a//b"),
    ("--bind-address", "::1"),
    ("--http-port", "0123"),
    ("--http-port", "٣"),
    ("--http-port", "65536"),
    ("--extender-allowed-name", "system:kube-scheduler"),
    ("--health-address", "0.0.0.0:9441"),
    ("--health-address", "9441"),
    ("--configmap", "shop/holds"),
    ("--configmap", "shop"),
    ("--namespace", "A"),
    ("--default-quota", "held.cpu=8"),
    ("--history-ttl", "5m"),
    ("--log-level", "debug"),
    ("--log-level", "DEBUG"),
    ("--reservation-store", "object"),
]
SWITCHES = (
    "--crd",
    "--no-crd",
    "--pod-moves",
    "--no-kubeconfig",
    "--help",
    "--what",
    "holds",
    "--",
)
ARGUMENTS = st.lists(
    st.one_of(
        st.sampled_from(VALUES),
        st.sampled_from(VALUES).map("=".join).map(lambda each: (each,)),
        st.sampled_from(SWITCHES).map(lambda each: (each,)),
        st.tuples(st.sampled_from(sorted(FLAGS)), st.sampled_from(("", "-1", "x y"))),
    ),
    max_size=4,
).map(lambda groups: [each for group in groups for each in group])
TEXTS = st.sampled_from(("", " ", "true", "0", "yes", "5m", "a/b c/d", "info", "./x", "9", "::1"))
VARIABLES = st.dictionaries(st.sampled_from([str(f.variable) for f in FLAGS.values()]), TEXTS)


READ: list[Settings] = []


def _reading() -> Any:
    def serve(settings: Settings) -> None:
        READ.append(settings)

    app = typer.Typer()
    app.command()(with_flags(serve))
    return typer.main.get_command(app)


TYPER = _reading()


def by_typer(arguments: list[str], variables: dict[str, str]) -> Settings:
    with mock.patch.dict(os.environ, variables):
        TYPER.main(arguments, standalone_mode=False)
    return READ.pop()


@given(ARGUMENTS, VARIABLES)
def test_what_is_read_without_typer_is_what_typer_reads(
    arguments: list[str], variables: dict[str, str]
) -> None:
    read = serve.read_plainly(arguments, variables)
    assert read is None or read == by_typer(arguments, variables)


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        ([], {}),
        (["--kubeconfig", "a", "--http-port=0", "--log-level", "debug"], {}),
        (["--configmap", "a/b", "--configmap=c/d", "--history-ttl", "0"], {}),
        (["--crd", "--no-crd", "--pod-moves"], {"RESERVER_CRD": "1"}),
        (["--namespace", "a"], {"RESERVER_NAMESPACE": "b", "RESERVER_CONFIGMAP": "c/d e/f"}),
        ([], {"RESERVER_HTTP_PORT": "9", "RESERVER_GRPC_ADDRESS": "127.0.0.1:1", "HOME": "/"}),
        ([], {"RESERVER_REBALANCE_DRY_RUN": "true", "RESERVER_LOG_LEVEL": ""}),
    ],
)
def test_what_a_pod_or_a_unit_says_takes_no_typer(
    arguments: list[str], variables: dict[str, str]
) -> None:
    read = serve.read_plainly(arguments, variables)
    assert read is not None
    assert read == by_typer(arguments, variables)


@pytest.mark.parametrize(
    "argument", ["--help", "--http-port", "--what=1", "holds", "--crd=1", "--no-namespace", "--"]
)
def test_help_and_mistakes_are_left_to_typer(argument: str) -> None:
    assert serve.read_plainly([argument], {}) is None


@pytest.mark.parametrize(
    ("arguments", "environment", "named"),
    [
        (["--rebalance-policy=p.yaml"], {}, "--rebalance-policy: .* --policy-config-file as"),
        (["--crd", "--no-rebalance-dry-run"], {}, "--no-rebalance-dry-run: .* with --dry-run as"),
        ([], {"RESERVER_REBALANCE_MAKE_ROOM": "1"}, "RESERVER_REBALANCE_MAKE_ROOM: .* --make-room"),
    ],
)
def test_a_removed_setting_is_an_error_that_names_the_replacement(
    arguments: list[str], environment: dict[str, str], named: str
) -> None:
    assert re.match(named, removed_setting(arguments, environment))
    assert not removed_setting(["--crd"], {"RESERVER_REBALANCE_MODE": ""})
