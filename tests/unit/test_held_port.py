"""A port that tests have for themselves, though whoever listens there ends and starts again."""

import socket
import sys

import pytest

from hack.controlplane.process import HeldPort


def is_free(port: int) -> bool:
    """Whether the kernel may give somebody this port who asks for any: nothing is bound to it."""
    with socket.socket() as stranger:
        try:
            stranger.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def test_a_port_that_is_held_is_listened_on_again_and_by_one_at_a_time() -> None:
    held = HeldPort()
    for _ in range(2):
        with (
            socket.create_server(("127.0.0.1", held.number)) as server,
            pytest.raises(OSError, match="in use"),
        ):
            socket.create_server(server.getsockname())
        assert is_free(held.number) is (sys.platform != "linux")
    held.close()
    assert is_free(held.number)
