"""The configuration file is read while the event loop goes on, whatever its size."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from reserver.process.reload import Reload
from reserver.settings.serve import Settings
from reserver.settings.strict_yaml import MOST_BYTES

if TYPE_CHECKING:
    from reserver.process.assembly import Assembly

HEAD = "apiVersion: reserver.io/v1alpha1\nkind: ReserverConfiguration\n"


async def test_others_have_their_turns_while_a_large_file_is_read(tmp_path: Path) -> None:
    """Such a read once held the event loop for half a second."""
    file = tmp_path / "config.yaml"
    file.write_text(HEAD + "unknown:\n" + "- {a: 1}\n" * 20_000)
    assert file.stat().st_size < MOST_BYTES
    reported: list[str] = []
    recorder = SimpleNamespace(warn=lambda _, reason, *__: reported.append(reason))
    assembly: Any = SimpleNamespace(recorder=recorder)
    reload = Reload(Settings(config=file), cast("Assembly", assembly))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while not reported:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await reload.look()
    await beside
    assert reported == ["ConfigurationRefused"]
    assert turns > 10
