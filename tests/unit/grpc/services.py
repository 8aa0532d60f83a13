"""A gRPC API of which only the parts that a test is about do anything."""

from typing import Any

from reserver.grpc.service import Service
from reserver.stores.archive import Archive
from tests.builders import NOW, state_of
from tests.unit.extender.fakes import FakeReadiness


class Nothing:
    """A service without stores, writers and counters."""

    archive = Archive(0.0)

    def latest(self, _: Any) -> None:
        return None

    def find(self, _: str) -> None:
        return None

    def count_rpc(self, *_: Any) -> None:
        return


def service_of(**parts: Any) -> Service:
    """Return a service with these parts and no others."""
    nothing: Any = Nothing()
    idle = dict.fromkeys(("stores", "extender", "counted", "past", "counted_holds"), nothing)
    quiet = {"access": None, "readiness": FakeReadiness(), "dump": bytes}
    home = {"namespace": "reserver-system", "clock": lambda: NOW}
    return Service(**{"state": state_of(), **idle, **quiet, **home, **parts})
