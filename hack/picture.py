"""Draws docs/demo.svg, the picture in the README: the demo at the moment that matters.

python -m hack.picture
"""

import asyncio
import io
import re
import tempfile
import time
from pathlib import Path

from rich.console import Console

from reserver.process import logs
from reserver.settings.serve import LogLevel
from reserver_demo.run import started
from reserver_demo.scenario import Stage, steps
from reserver_demo.view import draw

PICTURE = Path(__file__).parents[1] / "docs/demo.svg"
STEPS = 4  # until normal-pod has been refused
WIDTH, HEIGHT = 96, 20


async def main() -> None:
    """Play the first steps and draw the screen."""
    logs.configure(LogLevel.ERROR)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder:
        silent = Console(file=io.StringIO())
        async with started(Path(folder), silent) as demo:
            scenario = steps(Stage(demo.cluster, demo.reserver.assembly), time.time)
            await demo.play(scenario[:STEPS])
            console.print(draw(await demo.scene(), WIDTH, HEIGHT))
    svg = console.export_svg(title="reserver demo")
    # Rich names a font on the network; the reader's own will do.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL))


if __name__ == "__main__":
    asyncio.run(main())
