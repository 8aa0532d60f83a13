"""What krew does with a manifest and its archive, by krew's own rules.

They are those of its internal/index/validation/validate.go, pkg/index/types.go and
internal/installation/move.go; a field that krew does not have is refused here, too.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tarfile
from pathlib import Path
from typing import Annotated

import msgspec
import yaml

_Filled = Annotated[str, msgspec.Meta(min_length=1)]
_Line = Annotated[str, msgspec.Meta(pattern=r"\A[^\r\n]+\Z")]
_Version = Annotated[str, msgspec.Meta(pattern=r"\Av\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?\Z")]
_RESERVED = re.compile(r"(?i)con|prn|aux|nul|(com|lpt)[1-9]")


class Refused(Exception):
    """What krew would not install."""


class _Strict(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """An object without other fields than its own."""


class Requirement(_Strict):
    key: str
    operator: str
    values: list[str]


class Selector(_Strict):
    match_labels: dict[str, str] = {}
    match_expressions: list[Requirement] = []


class FileOperation(_Strict):
    from_: _Filled = msgspec.field(name="from")
    to: _Filled


class Platform(_Strict):
    uri: _Filled
    sha256: Annotated[str, msgspec.Meta(pattern=r"\A[a-f0-9]{64}\Z")]
    bin: _Filled
    selector: Selector
    files: Annotated[list[FileOperation], msgspec.Meta(min_length=1)]


class Spec(_Strict):
    version: _Version
    short_description: _Line
    platforms: Annotated[list[Platform], msgspec.Meta(min_length=1)]
    description: str = ""
    caveats: str = ""
    homepage: str = ""


class Metadata(_Strict):
    name: Annotated[str, msgspec.Meta(pattern=r"\A[\w-]+\Z")]


class Plugin(_Strict):
    api_version: str
    kind: str
    metadata: Metadata
    spec: Spec


def read(path: Path) -> Plugin:
    """Return a manifest.

    Raises:
        Refused, msgspec.ValidationError: krew would not install it.
    """
    plugin = msgspec.convert(yaml.safe_load(path.read_text()), Plugin)
    kind = f"{plugin.api_version}/{plugin.kind}"
    if kind != "krew.googlecontainertools.github.com/v1alpha2/Plugin":
        raise Refused(kind)
    if _RESERVED.fullmatch(plugin.metadata.name):
        raise Refused(plugin.metadata.name)
    for platform in plugin.spec.platforms:
        wanted = platform.selector
        keys = {*wanted.match_labels, *(each.key for each in wanted.match_expressions)}
        if not keys or keys - {"os", "arch"}:
            raise Refused(f"selector: {keys}")
    return plugin


def install(manifest: Path, store: Path, system: str) -> Path:
    """Unpack the archive beside a manifest; return the program that kubectl finds.

    Raises:
        Refused: nothing is meant for this system, or the archive is not what the manifest says.
    """
    (platform,) = (each for each in read(manifest).spec.platforms if _is_meant(each, system))
    archive = manifest.parent / platform.uri
    if hashlib.sha256(archive.read_bytes()).hexdigest() != platform.sha256:
        raise Refused(f"sha256 of {archive.name}")
    unpacked = store.with_name(f"{store.name}-unpacked")
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked, filter="data")
    store.mkdir()
    for each in platform.files:
        found = list(unpacked.glob(each.from_))
        if not found:
            raise Refused(f"files: nothing is called {each.from_!r}")
        for file in found:
            shutil.copy(file, store / each.to / file.name)
    program = store / platform.bin
    if not program.is_file():
        raise Refused(f"bin: there is no {platform.bin}")
    return program


def _is_meant(platform: Platform, system: str) -> bool:
    wanted = platform.selector
    return wanted.match_labels.get("os", system) == system and all(
        each.operator == "In" and system in each.values for each in wanted.match_expressions
    )
