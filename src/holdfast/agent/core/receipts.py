"""Long results as a model is told them: by their ends, and how to have the rest."""

from __future__ import annotations

from typing import Final

CHARS_MAX: Final = 24_000  # of a result that a model is told as a whole
PAGE_MAX: Final = 20_000  # of a tool that pages by itself: a receipt never cuts such a page
HEAD: Final = 8_000
TAIL: Final = 8_000
KEPT_MAX: Final = 1_000_000  # of a result that can be recalled
RECALL: Final = "recall"  # the tool


def receipt(call: str, text: str) -> str:
    """The text, or if it is long its two ends with a note of what is between them."""
    if len(text) <= CHARS_MAX:
        return text
    left_out = len(text) - HEAD - TAIL
    note = (
        f"\n[… {left_out} characters left out here. To read them, use {RECALL} with "
        f'call "{call}" and offset {HEAD} …]\n'
    )
    return f"{text[:HEAD]}{note}{text[-TAIL:]}"


def kept(text: str) -> str:
    """As much of a text as is kept at all: the beginning and the end of what is endless."""
    if len(text) <= KEPT_MAX:
        return text
    half = KEPT_MAX // 2
    lost = len(text) - 2 * half
    return f"{text[:half]}\n[… {lost} characters were not kept …]\n{text[-half:]}"
