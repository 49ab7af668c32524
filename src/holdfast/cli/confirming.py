"""Ask a person whether something is to be done, after showing them what it is."""

from __future__ import annotations

import anyio

from holdfast.cli.core.stop_page import AGAIN, consent
from holdfast.cli.output import complain
from holdfast.cli.terminal import Terminal


def confirmed(page: str, prompt: str) -> bool:
    """Whether a person said yes to what they are shown; where nobody can, it is no."""
    return anyio.run(_asked, page, prompt)


async def _asked(page: str, prompt: str) -> bool:
    terminal = Terminal()
    if not terminal.can_ask:
        complain(page)
        return False
    return bool(await terminal.ask(page, prompt, consent, again=AGAIN))
