"""Hand a model what others have written as data, in marks that it cannot close itself."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.agent.core.leave import in_a_line


def labelled(mark: str, about: Mapping[str, str], text: str) -> str:
    """A text between two marks of that name; the first says what it is."""
    inert = text.replace(f"</{mark}", f"<\u200b/{mark}").replace(f"<{mark}", f"<\u200b{mark}")
    facts = "".join(f' {name}="{_quoted(value)}"' for name, value in about.items())
    return f"<{mark}{facts}>\n{inert}\n</{mark}>"


def _quoted(value: str) -> str:
    return in_a_line(value).replace('"', "'").replace("<", "(").replace(">", ")")
