"""Generates reserver/v1 from proto/: messages and stubs, with their types for mypy.

The code is committed, so that neither users nor the image need a compiler; a unit test compares it
with the generated code.
"""

from __future__ import annotations

import os
import sys
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).parents[2]
PROTO = ROOT / "proto"

INIT = '"""The gRPC contract, generated from proto/reserver/v1 by `make proto`."""\n'


def generate(into: Path) -> None:
    """Write the package ``reserver.v1`` below a folder.

    Raises:
        RuntimeError: a contract is not valid.
    """
    # protoc looks for the plug-in of mypy-protobuf beside the interpreter that runs it.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    arguments = [
        "protoc",
        f"--proto_path={PROTO}",
        f"--proto_path={files('grpc_tools') / '_proto'}",
        f"--python_out={into}",
        f"--pyi_out={into}",
        f"--grpc_python_out={into}",
        f"--mypy_grpc_out=quiet:{into}",
        *map(str, contracts()),
    ]
    if protoc.main(arguments):
        raise RuntimeError("the contracts in proto/ are not valid")
    (into / "reserver/v1/__init__.py").write_text(INIT)


def contracts() -> list[Path]:
    """Return the files of the contract."""
    return sorted(PROTO.glob("reserver/v1/*.proto"))


if __name__ == "__main__":
    generate(ROOT)
