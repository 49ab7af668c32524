"""How the details of a failure become JSON that every reader accepts, and come back typed.

JSON has no room for some values: numbers beyond 64 bits are written in hexadecimal, infinities
and NaN as words, lone surrogates escaped, and what is nested too deep is left out. Reading undoes
the first two, where the class declares a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import isfinite
from types import NoneType, UnionType
from typing import TypeGuard, Union, cast, get_args, get_origin, get_type_hints

from holdfast.failures.base import Failure

_DEPTH_MAX = 32
_PLAIN: set[object] = {object, str, int, bool, NoneType}
_LEFT_OUT = "…"
_INT_LEAST, _INT_MOST = -(2**63), 2**64 - 1


class _Unfit(ValueError):
    """A value is not of the type that was declared for it."""


def clean(value: object, *, depth: int = 0) -> object:
    """Make any value a JSON value that every reader accepts."""
    if depth > _DEPTH_MAX:
        return _LEFT_OUT
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return _clean_number(value)
    if is_list(value):
        return [clean(item, depth=depth + 1) for item in value]
    if is_object(value):
        return {_readable(name): clean(item, depth=depth + 1) for name, item in value.items()}
    return _readable(value)


def frozen(value: object, *, depth: int = 0) -> object:
    """Make lists of JSON the tuples that details are made of."""
    if depth > _DEPTH_MAX:
        return _LEFT_OUT
    if is_list(value):
        return tuple(frozen(item, depth=depth + 1) for item in value)
    if is_object(value):
        return {name: frozen(item, depth=depth + 1) for name, item in value.items()}
    return value


def rebuilt(known: type[Failure], details: Mapping[str, object]) -> Failure | None:
    """Make a failure of a class from recorded details; None when they do not fit the class."""
    declared, optional = detail_types(known)
    if not declared.keys() - optional <= details.keys() <= declared.keys():
        return None
    try:
        return known(**{name: _fit(value, declared[name]) for name, value in details.items()})
    except _Unfit:
        return None


def detail_types(known: type[Failure]) -> tuple[dict[str, object], set[str]]:
    """The declared type of every detail of a class, and which of them have a default."""
    hints = get_type_hints(known)
    return {name: hints[name] for name in known.detail_names()}, known.defaults()


def is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Whether JSON would write it as a list."""
    return isinstance(value, (list, tuple))


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Whether JSON would write it as an object."""
    return isinstance(value, dict)


def _clean_number(value: int | float) -> int | float | str:
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    return int(value) if _INT_LEAST <= value <= _INT_MOST else hex(value)


def _fit(value: object, declared: object) -> object:
    origin, inside = get_origin(declared), get_args(declared)
    if origin in {Union, UnionType}:
        return _fit_any(value, inside)
    if origin is tuple and isinstance(value, tuple):
        return _fit_tuple(cast("tuple[object, ...]", value), inside)  # whatever it holds, we look
    if origin is dict and is_object(value):
        return {name: _fit(item, inside[1]) for name, item in value.items()}
    if isinstance(declared, type):
        return _fit_class(value, declared)
    raise _Unfit


def _fit_class(value: object, declared: type[object]) -> object:
    if issubclass(declared, Enum):
        return _fit_member(value, declared)
    if declared is float:
        return _fit_float(value)
    if declared is int and isinstance(value, str):
        return _fit_hex(value)
    if declared not in _PLAIN or not isinstance(value, declared):
        raise _Unfit
    if declared is int and isinstance(value, bool):
        raise _Unfit
    return value


def _fit_any(value: object, choices: tuple[object, ...]) -> object:
    for choice in choices:
        try:
            return _fit(value, choice)
        except _Unfit:
            continue
    raise _Unfit


def _fit_tuple(value: tuple[object, ...], declared: tuple[object, ...]) -> tuple[object, ...]:
    if len(declared) == 2 and declared[1] is ...:
        return tuple(_fit(item, declared[0]) for item in value)
    if len(value) != len(declared):
        raise _Unfit
    return tuple(_fit(item, choice) for item, choice in zip(value, declared, strict=True))


def _fit_member(value: object, declared: type[Enum]) -> Enum:
    for member in declared:
        if member.value == value:
            return member
    raise _Unfit


def _fit_float(value: object) -> float:
    if value in {"inf", "-inf", "nan"}:
        return float(str(value))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _Unfit
    try:
        return float(value)
    except OverflowError as error:
        raise _Unfit from error


def _fit_hex(value: str) -> int:
    if not value.lstrip("-").startswith("0x"):
        raise _Unfit
    try:
        return int(value, 16)
    except ValueError as error:
        raise _Unfit from error


def _readable(value: object) -> str:
    return str(value).encode("utf-8", "backslashreplace").decode()
