"""Builds the published packages: wheels, source distribution, and krew plug-in.

The wheel is tried in an empty environment, with the packages of the lock file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

import yaml

from hack.artefacts.packing import packed

ROOT = Path(__file__).parents[1]
OUT = ROOT / "dist"
CLIENT = ROOT / "hack/client"
LAUNCHER = ROOT / "hack/krew/kubectl-reserver"


def version() -> str:
    """Return the version that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def launcher(wheel: Path) -> bytes:
    """Return the plug-in's script, which runs this wheel and no other."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return LAUNCHER.read_text().replace("WHEEL", wheel.name).replace("SHA256", digest).encode()


def archive(wheel: Path) -> bytes:
    """Return the archive of the plug-in, the same bytes whenever it is made of the same wheel."""
    files = {
        "kubectl-reserver": launcher(wheel),
        wheel.name: wheel.read_bytes(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
    }
    return packed(files, executable="kubectl-reserver")


def manifest(release: str, digest: str, name: str) -> dict[str, object]:
    """Return krew's manifest of the plug-in; who publishes it puts the address before its name."""
    selector = {
        "matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]
    }
    files = [{"from": "*", "to": "."}]
    platform = {"selector": selector, "uri": name, "sha256": digest, "bin": "kubectl-reserver"}
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "reserver"},
        "spec": {
            "version": f"v{release}",
            "shortDescription": "Hold node capacity for pods that do not exist yet",
            "description": "Creates reservations of node capacity, shows what is used, held and "
            "free, and says why a pod waits. Reserver has to run beside kube-scheduler.\n",
            "caveats": "It runs `reserver` if that is installed; else it needs uv or pipx, which "
            "install the wheel in it, and from the Python index what that needs, where nothing "
            "else sees it, with the first call.\n",
            "platforms": [platform | {"files": files}],
        },
    }


def write_plug_in(folder: Path, release: str, wheel: Path) -> None:
    """Write what krew installs: the archive, and the manifest that names it by its digest."""
    packed, name = archive(wheel), f"kubectl-reserver-v{release}.tar.gz"
    (folder / name).write_bytes(packed)
    text = manifest(release, hashlib.sha256(packed).hexdigest(), name)
    (folder / "krew-reserver.yaml").write_text(yaml.safe_dump(text, sort_keys=False))


def sums(files: Iterable[Path]) -> str:
    """Return what `sha256sum --check` reads."""
    lines = (f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}" for each in files)
    return "".join(f"{line}\n" for line in lines)


def build() -> Path:
    """Write all of it, and return the wheel."""
    OUT.mkdir(exist_ok=True)
    for pattern in ("*.whl", "*.tar.gz", "*.tgz"):
        for old in OUT.glob(pattern):
            old.unlink()
    for target in ("wheel", "sdist"):
        _run(
            sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(OUT)
        )
    (wheel,) = OUT.glob("*.whl")
    client_wheel(OUT)
    write_plug_in(OUT, version(), wheel)
    (OUT / "SHA256SUMS").write_text(sums((*OUT.glob("*.whl"), *OUT.glob("*.tar.gz"))))
    return wheel


def client_wheel(folder: Path) -> Path:
    """Build the wheel of the Python client alone, and return it."""
    build = (sys.executable, "-m", "hatchling", "build", "--target", "wheel")
    _run(*build, "--directory", str(folder), cwd=CLIENT)
    (wheel,) = folder.glob(f"kube_reserver_client-{version()}-*.whl")
    return wheel


def tried(wheel: Path) -> None:
    """Install a wheel into an empty environment, and play the demo there.

    Raises:
        CalledProcessError: something of it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        uv, python = str(ROOT / ".venv/bin/uv"), f"{folder}/venv/bin/python"
        _run(uv, "venv", "--quiet", "--python", sys.executable, f"{folder}/venv")
        install = (uv, "pip", "install", "--quiet", "--python", python)
        _run(*install, "--require-hashes", "-r", str(ROOT / "requirements.lock"))
        _run(*install, "--no-deps", "--no-index", str(wheel))
        for words in (("--version",), ("completion", "bash"), ("demo", "--once")):
            _run(f"{folder}/venv/bin/reserver", *words, cwd=folder)
        _try_plug_in(wheel, Path(folder), uv)


def _try_plug_in(wheel: Path, folder: Path, uv: str) -> None:
    """Run the plug-in where there is uv, but no reserver."""
    plug_in, tools = folder / "kubectl-reserver", folder / "tools"
    plug_in.write_bytes(launcher(wheel))
    shutil.copy(wheel, folder)
    tools.mkdir()
    (tools / "uv").symlink_to(uv)
    path = {"PATH": f"{tools}:/usr/bin:/bin"}
    subprocess.run(("sh", str(plug_in), "--version"), env=os.environ | path, check=True)


def _run(*command: str, cwd: str | Path = ROOT) -> None:
    subprocess.run(command, cwd=cwd, check=True)


def main() -> None:
    """Build, try, and say what there is."""
    tried(build())
    for each in sorted(OUT.iterdir()):
        print(f"{each.relative_to(ROOT)}  {each.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
