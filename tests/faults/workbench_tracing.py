"""Run a child under strace, name the system calls it makes, and do harm at any one of them.

The tracer is attached once the child has loaded all that it needs. Its counters are per name of a
system call, so a call is named by that and by how many of the same name came before it. Who asks
about every process of the machine opens more files when there are more processes, so files are
named by their paths.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.faults.forking import FORKS, ended, start

MISSING = None if shutil.which("strace") else "strace is missing: no system call can be interrupted"

OPENING = ("open", "openat", "openat2", "creat")
_ALLOCATING = (
    *("write", "pwrite64", "writev", "pwritev", "pwritev2", "fallocate", "copy_file_range"),
    *("sendfile", "mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat", "mknodat"),
    *("setxattr", "lsetxattr", "fsetxattr"),
)
_SYNCING = ("fsync", "fdatasync", "sync_file_range", "syncfs")
_RENAMING = ("rename", "renameat", "renameat2")
_OTHERS = (
    *("unlink", "unlinkat", "rmdir", "ftruncate", "truncate", "ioctl", "mount", "umount2"),
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utimensat", "removexattr", "lremovexattr", "fremovexattr"),
)
NAMES = (*OPENING, *_ALLOCATING, *_SYNCING, *_RENAMING, *_OTHERS)

_LINE = re.compile(r"^(\w+)\((.*)$", re.MULTILINE)
_PATH = re.compile(r'"((?:[^"\\]|\\.)+)"')
_CHANGES = re.compile(r"O_CREAT|O_TRUNC|O_TMPFILE|FICLONE")


@dataclass(frozen=True, slots=True)
class Call:
    """One system call of a run: its name, which of that name it was, and what it said.

    `again` is which it was among those of the same name that opened the same path.
    """

    name: str
    number: int
    text: str
    again: int = 0

    @property
    def path(self) -> str | None:
        """The path that it opens, if that can be told to a tracer."""
        found = _PATH.search(self.text) if self.name in OPENING else None
        is_fit = found is not None and "\\" not in found[1] and not found[1].startswith("/proc/")
        return found[1] if found is not None and is_fit else None

    def words(self, what: str) -> tuple[str, ...]:
        """Words that let the tracer do this at the call, whatever else is opened before."""
        if self.path is None:
            return self.counted(what)
        return "-P", self.path, "-e", f"inject={self.name}:{what}:when={self.again}"

    def counted(self, what: str) -> tuple[str, ...]:
        """Words that let the tracer do this at the call, wherever that leads."""
        return "-e", f"inject={self.name}:{what}:when={self.number}"

    @property
    def changes(self) -> bool:
        """Whether it changes anything on a disk, or sees to it that a change lasts."""
        if self.name in OPENING or self.name == "ioctl":
            return _CHANGES.search(self.text) is not None
        return True

    def __str__(self) -> str:
        return f"{self.name} {self.number} ({self.text[:90]})"


@dataclass(frozen=True, slots=True)
class Harm:
    """What is done to a run: words for the tracer, or a habit of the one who runs.

    `error` is what a single call is to fail with; `otherwise` are words for when its path was made
    up in the run.
    """

    words: tuple[str, ...]
    what: str
    habits: tuple[str, ...] = ()
    error: str | None = None
    otherwise: tuple[str, ...] = ()

    @property
    def tries(self) -> tuple[Harm, Harm, Harm]:
        """How to go about it: on a busy machine not every try meets its call."""
        again = replace(self, words=self.otherwise or self.words)
        return self, again, again

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True, slots=True)
class Ran:
    """All that a tracer saw of a child, until it ended."""

    trace: str

    @property
    def was_harmed(self) -> bool:
        """Whether the tracer did what it was told to do."""
        return "(INJECTED)" in self.trace or "killed by SIGKILL" in self.trace

    @property
    def calls(self) -> list[Call]:
        """Every traced call, in order."""
        return list(calls_of(self.trace))

    def has_suffered(self, harm: Harm) -> bool:
        """Whether a harm was done, at a call at which it makes sense: it may have met another."""
        if not harm.words or harm.error is None:
            return not harm.words or self.was_harmed
        injected = [call for call in self.calls if "(INJECTED)" in call.text]
        return any(harm.error in errors_at(call) for call in injected)


def calls_of(trace: str) -> Iterator[Call]:
    """The calls of a trace, in order, each with its number among those of its name."""
    counts: Counter[str] = Counter()
    for name, text in _LINE.findall(trace):
        counts[name] += 1
        call = Call(name, counts[name], text)
        if call.path is not None:
            counts[f"{name} {call.path}"] += 1
            call = replace(call, again=counts[f"{name} {call.path}"])
        yield call


def traced(target: Callable[..., None], order: object, log: Path, harm: Harm) -> Ran:
    """Run a child that says when it is ready and begins when it is told; then it is traced."""
    ours, theirs = FORKS.Pipe()
    child = FORKS.Process(target=target, args=(order, harm.habits, theirs))
    start(child)
    ours.recv_bytes()
    log.unlink(missing_ok=True)
    words = ["-o", str(log), "-e", f"trace={','.join(f'?{name}' for name in NAMES)}", *harm.words]
    with subprocess.Popen(
        ["strace", "-p", str(child.pid), *words], stderr=subprocess.PIPE, text=True, cwd="/"
    ) as tracer:
        assert tracer.stderr is not None
        said: list[str] = []  # also of a path that it takes for another one
        while "attached" not in "".join(said):
            said.append(tracer.stderr.readline())
            assert said[-1], said
        ours.send_bytes(b"go")
        status = ended(child)
        tracer.stderr.read()
    ours.close()
    theirs.close()
    assert status is not None, "it does not end"
    return Ran(log.read_text(errors="replace"))


NO_HARM = Harm((), "no harm")


def killed_at(call: Call) -> Harm:
    """The process dies as it makes this call, which does not happen."""
    what = "signal=KILL"
    return Harm(call.words(what), f"killed at {call}", otherwise=call.counted(what))


def refused_at(call: Call, error: str) -> Harm:
    """This one call fails."""
    what = f"error={error}"
    name = f"{error} at {call}"
    return Harm(call.words(what), name, error=error, otherwise=call.counted(what))


def refused_from(call: Call, error: str, calls: Iterable[Call]) -> Harm:
    """From this call on, everything fails that needs room, or a disk that works, for good."""
    names = (*_ALLOCATING, *_SYNCING) if error == "EIO" else _ALLOCATING
    counts: Counter[str] = Counter()
    for earlier in calls:
        if earlier == call:
            break
        counts[earlier.name] += 1
    injects = [f"inject=?{name}:error={error}:when={counts[name] + 1}+" for name in names]
    return Harm(tuple(word for one in injects for word in ("-e", one)), f"{error} from {call} on")


def errors_at(call: Call) -> tuple[str, ...]:
    """The errors that make sense at a call."""
    if not call.changes:
        return ("EMFILE",) if call.name in OPENING else ()
    if call.name in OPENING:
        return ("ENOSPC", "EDQUOT", "EIO", "EMFILE")
    if call.name in _OTHERS:
        return ("EIO",)
    return ("ENOSPC", "EDQUOT", "EIO")


def _without_repeats(calls: list[Call]) -> Iterator[Call]:
    """Of what is asked of every process of the machine, the first of each sort is enough."""
    asked: set[str] = set()
    for call in calls:
        question = re.sub(r"\d+", "", call.text)
        if '"/proc/' not in question or question not in asked:
            asked.add(question)
            yield call


def harms(calls: list[Call]) -> list[Harm]:
    """Every harm that can be done to a run that makes these calls."""
    calls = list(_without_repeats(calls))
    changing = [call for call in calls if call.changes]
    lasting = [call for call in changing if call.name in (*_ALLOCATING, *_SYNCING)]
    writes = [call for call in changing if call.name == "write"]
    return [
        *map(killed_at, changing),
        *(refused_at(call, error) for call in calls for error in errors_at(call)),
        *(
            refused_from(call, error, calls)
            for call in lasting
            for error in ("ENOSPC", "EDQUOT", "EIO")
            if error == "EIO" or call.name in _ALLOCATING
        ),
        *(
            Harm((), f"short write {number}", (f"short-{number}",))
            for number in range(1, len(writes) + 1)
        ),
    ]
