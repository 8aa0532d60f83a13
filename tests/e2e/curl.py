"""grpcurl: a gRPC client that nobody here wrote, which knows the contract from reflection only."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hack.go_tool import GRPCURL
from hack.programs import started


@dataclass(frozen=True)
class Refused(Exception):
    """A refused call, with the output of grpcurl."""

    words: str


@dataclass(frozen=True)
class Curl:
    """grpcurl, for one server.

    Attributes:
        address: of the server.
        flags: as grpcurl takes them.
    """

    address: str
    flags: tuple[str, ...] = ("-plaintext",)

    def run(self, *arguments: str, data: object = None, flags: tuple[str, ...] = ()) -> str:
        """Return what grpcurl prints.

        Raises:
            Refused: the call failed.
        """
        command = [str(GRPCURL.binary), *self.flags, *flags]
        command += ["-d", json.dumps(data)] if data is not None else []
        done = subprocess.run(
            [*command, self.address, *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode and not done.stdout:
            raise Refused(done.stderr)
        return done.stdout

    def call(self, method: str, **data: Any) -> Any:
        """Return the answer to a call of the contract.

        Raises:
            Refused: it was refused.
        """
        return json.loads(self.run(f"reserver.v1.{method}", data=data))

    def stream(self, method: str, is_enough: Callable[[list[Any]], bool], **data: Any) -> list[Any]:
        """Return the messages of a stream until they are enough, or for 90 seconds."""
        command = [str(GRPCURL.binary), *self.flags, "-max-time=90", "-d", json.dumps(data)]
        command += [self.address, f"reserver.v1.{method}"]
        told: list[Any] = []
        with started(*command, stdout=subprocess.PIPE, text=True) as streaming:
            assert streaming.stdout is not None
            lines: list[str] = []
            for line in streaming.stdout:
                lines.append(line)
                if line == "}\n":  # Only a message's last line is not indented.
                    told.append(json.loads("".join(lines)))
                    lines.clear()
                    if is_enough(told):
                        break
        return told
