"""grpcurl: a gRPC client that nobody here wrote, which knows the contract from reflection only."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from hack.go_tool import GRPCURL


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

    def stream(self, method: str, seconds: float, **data: Any) -> list[Any]:
        """Return the messages of a stream within so many seconds."""
        flags = (f"-max-time={seconds}",)
        text = self.run(f"reserver.v1.{method}", data=data, flags=flags)
        decoder, told, position = json.JSONDecoder(), [], 0
        while (position := text.find("{", position)) >= 0:
            message, position = decoder.raw_decode(text, position)
            told.append(message)
        return told
