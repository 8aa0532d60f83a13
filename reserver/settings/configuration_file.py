"""Reads the configuration file of `reserver serve`, and detects its changes."""

from __future__ import annotations

from pathlib import Path

from reserver.errors import ConfigurationError
from reserver.settings.configuration import merged, parse
from reserver.settings.serve import Settings
from reserver.settings.strict_yaml import MOST_BYTES

_Stamp = tuple[int, int, int] | None


class ConfigurationFile:
    """A file at a path with symbolic links, which change when a mounted ConfigMap changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: _Stamp = None
        self._seen: _Stamp = None

    def settings(self, flags: Settings) -> Settings:
        """Return the settings of flags and file.

        Raises:
            ConfigurationError: the file cannot be read, is invalid or contradicts a flag; one line
                for each problem.
        """
        self._stamp = self._seen = self._look()
        try:
            with self._path.open("rb") as file:
                raw = file.read(MOST_BYTES + 1)
        except OSError as exc:
            problem = f"{self._path}: cannot be read: {exc.strerror}"
            raise ConfigurationError(f"{problem}; mount it, or correct --config") from exc
        try:
            return merged(flags, parse(raw))
        except ConfigurationError as exc:
            lines = str(exc).splitlines()
            raise ConfigurationError("\n".join(f"{self._path}: {line}" for line in lines)) from exc

    def has_changed(self) -> bool:
        """Return whether the file was replaced or written since it was last read.

        A file that has also changed since the last call may be half written, so this returns False.
        """
        before, self._seen = self._seen, self._look()
        return before == self._seen != self._stamp

    def _look(self) -> _Stamp:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_ctime_ns, stat.st_size


def configured(flags: Settings) -> Settings:
    """Return the settings of flags and of their configuration file, if any.

    Raises:
        ConfigurationError: as in `ConfigurationFile.settings`.
    """
    return flags if flags.config is None else ConfigurationFile(flags.config).settings(flags)
