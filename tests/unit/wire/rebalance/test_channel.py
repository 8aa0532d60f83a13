"""What the process that serves and the one that rebalances tell each other."""

import msgspec

from reserver.cli.rebalance_child import settings_of
from reserver.rebalance.modes import Compat, Mode
from reserver.wire.rebalance.channel import Answer, Orders, Told, line, read

ORDERS = Orders(
    policy="/etc/policy.yaml",
    make_room=False,
    interval_s=60.0,
    compat=Compat.UPSTREAM,
    mode=Mode.RESERVE_FIRST,
    dry_run=True,
    namespace="elsewhere",
    kubeconfig="",
    log_level="info",
)


def test_what_is_told_is_one_line_and_read_as_it_was() -> None:
    said = (
        ORDERS,
        Told(asks_holds=True),
        Told(metrics="a 1\nb 2\n"),
        Answer(held={"n": {"cpu": 1}}),
    )
    for each in said:
        written = line(each)
        assert written.count(b"\n") == 1
        assert read(type(each), written) == each


def test_orders_are_settings_of_a_run_that_keeps_to_the_lease() -> None:
    settings = settings_of(ORDERS)
    assert (settings.descheduling_interval, settings.compat) == (60.0, Compat.UPSTREAM)
    assert settings.mode is Mode.RESERVE_FIRST
    assert (settings.dry_run, settings.leader_elect) == (True, True)
    assert settings.leader_elect_resource_namespace == "elsewhere"
    assert str(settings.policy_config_file) == "/etc/policy.yaml"
    assert not settings.make_room


def test_orders_may_ask_for_room_and_for_no_policy() -> None:
    room = msgspec.structs.replace(ORDERS, policy="", make_room=True, compat=Compat.PLAN)
    settings = settings_of(room)
    assert (settings.policy_config_file, settings.make_room) == (None, True)
