"""Failures: expected errors as declared exception classes.

    class ReplayGap(
        Failure,
        code="EXEC_REPLAY_GAP",
        kind=Kind.UNCERTAIN,
        title="Output is missing",
        user_message="Some output of {process} is no longer kept by the server.",
    ):
        \"""The server no longer retains output that we have not seen.\"""

        process: str
        expected: int

The class header declares what is true of every such failure, the body its details. An instance may
narrow what its class declares (`narrow`); callers on the way up add the phase (`during`), the ids
(`about`) and the time of the first record (`stamped`). Details are JSON values (tuples for lists),
never file contents or prompts.

A failure compares equal by code, details and circumstances, and survives copy, pickle and JSON
(`failures.wire`). A code that this version does not declare decodes to `ForeignFailure`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from reprlib import Repr
from typing import ClassVar, Self, cast, dataclass_transform

from holdfast.failures.kinds import Action, Kind, Recovery

type_of: dict[str, type[Failure]] = {}
former_codes: dict[str, str] = {}  # journals and reports of earlier versions still decode
_class_loaders: list[Callable[[], None]] = []

_LISTED_MAX = 10
_BRIEF = Repr()
_BRIEF.maxstring = _BRIEF.maxother = 500
_BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxdict = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """The ids in play when something failed; those that do not apply are None."""

    request_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    project_id: str | None = None
    session_id: str | None = None
    runner_type: str | None = None
    provider: str | None = None
    model: str | None = None

    def known(self) -> dict[str, str]:
        """Only those that apply."""
        named = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """The part of a failure that an instance may narrow or callers may add."""

    phase: str
    recovery: Recovery
    retryable: bool
    actions: tuple[Action, ...]
    retry_after: float | None = None
    ids: Ids = Ids()


@dataclass_transform(kw_only_default=True, eq_default=False)
class Failure(Exception):
    """Base class of all failures; raised like any other exception."""

    code: ClassVar[str]
    kind: ClassVar[Kind]
    title: ClassVar[str]
    user_template: ClassVar[str]
    declared: ClassVar[Circumstances]
    sentence: ClassVar[str]
    _detail_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(  # noqa: PLR0913  # the header of a declaration, all by keyword
        cls,
        *,
        code: str,
        kind: Kind,
        title: str,
        user_message: str,
        phase: str = "",
        recovery: Recovery | None = None,
        retryable: bool | None = None,
        actions: tuple[Action, ...] = (),
        formerly: str | None = None,
    ) -> None:
        super().__init_subclass__()
        if code in type_of or code in former_codes or formerly in type_of:
            raise TypeError(f"{code} is declared twice")
        if not (code.isupper() and title and user_message and cls.__doc__):
            raise TypeError(f"{code} lacks a title, a user message or a docstring")
        recovery = recovery or kind.recovery
        retryable = recovery.repeats if retryable is None else retryable
        if recovery.repeats and not retryable:
            raise TypeError(f"{code} recommends to repeat what it says cannot succeed")
        cls.code, cls.kind, cls.title, cls.user_template = code, kind, title, user_message
        cls.declared = Circumstances(
            phase=phase,
            recovery=recovery,
            retryable=retryable,
            actions=actions,
        )
        cls.sentence = cls.__doc__.strip().partition("\n")[0].removesuffix(".")
        # Not a dataclass: it would compile an `__init__` for hundreds of classes at start-up.
        cls._detail_names = tuple(dict.fromkeys((*cls._detail_names, *cls.__annotations__)))
        type_of[code] = cls
        if formerly:
            former_codes[formerly] = code

    def __init__(self, **details: object) -> None:
        declared, given = set(self._detail_names), details.keys()
        if missing := declared - given - self.defaults():
            raise TypeError(f"{self.code} lacks {', '.join(sorted(missing))}")
        if unknown := given - declared:
            raise TypeError(f"{self.code} has no {', '.join(sorted(unknown))}")
        super().__init__()
        self.__dict__.update(details)
        self._circumstances = self.declared
        self._timestamp: float | None = None

    @classmethod
    def detail_names(cls) -> tuple[str, ...]:
        """The names of the details that every such failure carries."""
        return cls._detail_names

    @classmethod
    def defaults(cls) -> set[str]:
        """The names of the details that need not be given."""
        return {name for name in cls._detail_names if hasattr(cls, name)}

    @property
    def details(self) -> dict[str, object]:
        """What this failure was raised with, inherited ones included."""
        return {name: getattr(self, name) for name in self.detail_names()}

    @property
    def category(self) -> str:
        """The first word of the code."""
        return self.code.partition("_")[0]

    @property
    def message(self) -> str:
        """For logs: the sentence of its class, with the details, long ones abridged."""
        details = ", ".join(f"{name}={_BRIEF.repr(value)}" for name, value in self.details.items())
        return f"{self.sentence} ({details})" if details else self.sentence

    @property
    def user_message(self) -> str:
        """For people: what happened and what it means, in one or two sentences."""
        return self.user_template.format_map(
            {name: _listed(value) for name, value in self.details.items()}
        )

    @property
    def circumstances(self) -> Circumstances:
        """What it knows beyond its class and its details."""
        return self._circumstances

    @property
    def timestamp(self) -> float | None:
        """When it was first recorded, in seconds since the epoch."""
        return self._timestamp

    @property
    def phase(self) -> str:
        """Where in the work it happened: `publish`, or with a sub-phase `publish.journal`."""
        return self.circumstances.phase

    @property
    def recovery(self) -> Recovery:
        """The one way back that is recommended."""
        return self.circumstances.recovery

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed when it is made again."""
        return self.circumstances.retryable

    @property
    def actions(self) -> tuple[Action, ...]:
        """What a screen may offer, most likely first."""
        return self.circumstances.actions

    @property
    def retry_after(self) -> float | None:
        """Seconds that the other side asked us to wait, if it did."""
        return self.circumstances.retry_after

    @property
    def ids(self) -> Ids:
        """The ids in play."""
        return self.circumstances.ids

    def narrow(
        self,
        *,
        recovery: Recovery | None = None,
        retryable: bool | None = None,
        actions: tuple[Action, ...] | None = None,
        retry_after: float | None = None,
    ) -> Self:
        """Narrow the declaration for this instance; an assertion fails if it would widen it."""
        now = self._circumstances
        recovery = now.recovery if recovery is None else recovery
        retryable = now.retryable if retryable is None else retryable
        actions = now.actions if actions is None else actions
        retry_after = now.retry_after if retry_after is None else retry_after
        assert self.declared.retryable or not retryable, f"{self.code} is never retryable"
        assert retryable or not recovery.repeats, f"{recovery} repeats what cannot succeed"
        assert set(actions) <= set(self.declared.actions), f"{self.code} never offers these"
        return self._with(
            recovery=recovery, retryable=retryable, actions=actions, retry_after=retry_after
        )

    def during(self, phase: str) -> Self:
        """Set the phase, unless an inner call has set a more exact one."""
        return self if self.phase else self._with(phase=phase)

    def about(self, ids: Ids) -> Self:
        """Add the ids in play; what is already known stays."""
        return self._with(ids=dataclasses.replace(ids, **self.ids.known()))

    def stamped(self, now: float) -> Self:
        """Note when it was first recorded, in seconds since the epoch; the first note stays."""
        if self._timestamp is None:
            self._timestamp = now
        return self

    def restored(self, circumstances: Circumstances, timestamp: float | None) -> Self:
        """Take on what a stored or sent failure knew."""
        self._circumstances, self._timestamp = circumstances, timestamp
        return self

    def _with(self, **changes: object) -> Self:
        self._circumstances = dataclasses.replace(self._circumstances, **changes)  # type: ignore[arg-type]  # the callers above are typed
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Failure) and self._identity() == other._identity()

    def _identity(self) -> tuple[object, ...]:
        return self.code, self.details, self._circumstances

    def __hash__(self) -> int:
        return hash(self.code)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def __repr__(self) -> str:
        details = ", ".join(f"{name}={_BRIEF.repr(value)}" for name, value in self.details.items())
        return f"{type(self).__name__}({details})"

    def __reduce__(self) -> tuple[object, ...]:
        return revive, (self.code, self.details, self._circumstances, self._timestamp)


class ForeignFailure(
    Failure,
    code="FOREIGN_FAILURE",
    kind=Kind.BROKEN,
    title="Unknown failure",
    user_message="{foreign_user_message}",
    retryable=True,
    actions=tuple(Action),
):
    """A failure that another version or program declared and we do not know."""

    foreign_code: str
    foreign_title: str
    foreign_message: str
    foreign_user_message: str
    foreign_details: dict[str, object]


def class_of(code: str) -> type[Failure] | None:
    """The class that declares a code, or declared it in an earlier version."""
    while former_codes.get(code, code) not in type_of and _class_loaders:
        _class_loaders.pop()()
    return type_of.get(former_codes.get(code, code))


def set_class_loader(load: Callable[[], None]) -> None:
    """Have `load` import the modules that declare failures when an unknown code is decoded.

    A program that imports lazily calls this once at its start. `load` runs at most once.
    """
    _class_loaders[:] = [load]


def title_of(failure: Failure) -> str:
    """The title that a person reads: that of the declaration, also if another program made it."""
    return failure.foreign_title if isinstance(failure, ForeignFailure) else failure.title


def revive(
    code: str, details: dict[str, object], circumstances: Circumstances, timestamp: float | None
) -> Failure:
    """Rebuild a failure that crossed a process or a store; an unknown one stays readable."""
    known = class_of(code)
    if known is None or set(known.detail_names()) != details.keys():
        failure: Failure = ForeignFailure(
            foreign_code=code,
            foreign_title=code,
            foreign_message=code,
            foreign_user_message=code,
            foreign_details=details,
        )
    else:
        failure = known(**details)
    return failure.restored(circumstances, timestamp)


def _listed(detail: object) -> object:
    """A detail as a person reads it: several as a list, of many only the first."""
    if not isinstance(detail, tuple):
        return detail
    several = cast("tuple[object, ...]", detail)  # a tuple is one of objects
    shown, left_out = several[:_LISTED_MAX], len(several) - _LISTED_MAX
    words = ", ".join(map(str, shown))
    return f"{words} and {left_out:,} more" if left_out > 0 else words
