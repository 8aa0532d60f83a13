"""`python -m hack.page.types` checks the page's JavaScript by its JSDoc, with TypeScript.

TypeScript is built once, from Go. `--if-built` checks nothing where it has not been built.
"""

from __future__ import annotations

import subprocess
import sys

from hack.controlplane.build import BuildError
from hack.go_tool import TYPESCRIPT

_CONFIG = "hack/typescript/tsconfig.json"


def main() -> int:
    """Check; return the exit status of TypeScript."""
    if "--if-built" in sys.argv and not TYPESCRIPT.binary.is_file():
        print("The page's types are left to `make browser`: TypeScript is not built.")
        return 0
    try:
        compiler = TYPESCRIPT.build()
    except BuildError as exc:
        sys.exit(str(exc))
    return subprocess.run([compiler, "--project", _CONFIG], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
