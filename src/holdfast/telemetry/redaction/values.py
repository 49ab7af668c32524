"""Take secrets out of nested JSON values, also by the names they go under."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeGuard, TypeVar

from holdfast.telemetry.redaction.names import (
    Assigned,
    Form,
    Weight,
    is_hidden,
    is_secret,
    is_whereabouts,
    weigh,
)
from holdfast.telemetry.redaction.scan import placeholder

DEPTH_MAX = 32
ITEMS_MAX = 10_000
TEXT_MAX = 65_536
CUT = "[cut]"
_PAIR = 2
_NAME_MAX = 64
_FLAG = re.compile(r"--([A-Za-z][\w\-]{0,62})\Z", re.ASCII)
_FLAG_OR_HEADER = re.compile(
    r"(?:--)?(authorization|[A-Za-z]\w{0,30}-[\w\-]{1,30}|(?<=--)[A-Za-z]\w{0,62})\Z",
    re.ASCII | re.IGNORECASE,
)
_Item = TypeVar("_Item")


class ValueRedactor:
    """Makes of any value a JSON value without secrets, of bounded depth and size."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact

    def __call__(self, value: object) -> object:
        """The value without its secrets; what is too deep or too much is cut off."""
        return _Walk(self._redact).value(value, depth=0)

    def mapping(self, value: Mapping[str, object]) -> dict[str, object]:
        """The same of an object, which stays one."""
        return _Walk(self._redact).mapping(value, depth=0)


class _Walk:
    """One walk through one value; counts what it has seen."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._left = ITEMS_MAX

    def value(self, value: object, *, depth: int, name: str = "") -> object:
        self._left -= 1
        if depth > DEPTH_MAX or self._left < 0:
            return CUT
        if value is None or isinstance(value, (bool, int, float)):
            return self._number(value, name)
        if _is_object(value):
            return self.mapping(value, depth=depth, outer=name)
        if _is_list(value):
            return self._items(value, depth=depth, outer=name)
        return self._text(_as_text(value), name)

    def mapping(
        self, value: Mapping[str, object], *, depth: int, outer: str = ""
    ) -> dict[str, object]:
        """Whatever lies under the name of a secret is one, unless its own name says more."""
        walked: dict[str, object] = {}
        for key, item in self._some(list(value.items())):
            # As variables and headers are often written: {"name": "API_KEY", "value": "..."}.
            own = str(value.get("name", key))[:_NAME_MAX] if key == "value" else str(key)
            name = self._redact(str(key)[:TEXT_MAX])
            walked[name] = self.value(item, depth=depth + 1, name=_heavier(outer, own))
        return walked

    def _items(self, value: list[object], *, depth: int, outer: str) -> list[object]:
        """Also what follows a flag in a command, or the name of a header in a pair, is a secret."""
        walked: list[object] = []
        before = ""
        for item in self._some(value):
            walked.append(self.value(item, depth=depth + 1, name=_heavier(outer, before)))
            names = _FLAG if len(value) > _PAIR else _FLAG_OR_HEADER
            named = names.match(item) if isinstance(item, str) else None
            before = named[1] if named else ""
        return walked

    def _some(self, items: list[_Item]) -> list[_Item]:
        return items[: max(self._left, 0)]

    def _text(self, text: str, name: str) -> str:
        cut = len(text) > TEXT_MAX
        clean = self._redact(text[:TEXT_MAX])
        weight = weigh(name)
        if weight is not Weight.NONE and clean and not is_hidden(clean):
            assigned = Assigned(name=name, value=clean, form=Form.QUOTED)
            is_hard = weight is Weight.HARD and not is_whereabouts(assigned)
            if is_hard or is_secret(assigned):
                return placeholder("secret")
        return clean + CUT if cut else clean

    def _number(self, value: float | None, name: str) -> object:
        is_told = value is not None and not isinstance(value, bool)
        return placeholder("secret") if is_told and weigh(name) is Weight.HARD else value


def _heavier(outer: str, own: str) -> str:
    """Of two names the one that says more."""
    return outer if weigh(outer).value > weigh(own).value else own


def _is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, (list, tuple))


def _as_text(value: object) -> str:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return value if isinstance(value, str) else str(value)
