"""Before a marker says so, everything is durable: checked on the calls that were made."""

from __future__ import annotations

import pytest

from tests.faults.workbench_ground import laid_out
from tests.faults.workbench_lint import lint, markers_put, staged
from tests.faults.workbench_scenes import MARKED
from tests.faults.workbench_tracing import MISSING, Harm, killed_at

STAGE = "/p/.holdfast-stage-x"
SOUND = f"""\
mkdirat(3</p>, ".holdfast-stage-x", 0700) = 0
openat(4<{STAGE}>, "0", O_WRONLY|O_CREAT|O_EXCL, 0600) = 5<{STAGE}/0>
write(5<{STAGE}/0>, "new, with = and \\"", 18) = 18
fsync(5<{STAGE}/0>) = 0
fsync(4<{STAGE}>) = 0
fsync(3</p>)                            = 0
openat(AT_FDCWD</>, "/s/.marker.json.w.tmp", O_RDWR|O_CREAT|O_EXCL, 0600) = 6</s/.marker.json.w.tmp>
write(6</s/.marker.json.w.tmp>, "prepared", 8) = 8
fsync(6</s/.marker.json.w.tmp>) = 0
rename("/s/.marker.json.w.tmp", "/s/marker.json") = 0
fsync(7</s>) = 0
renameat2(3</p>, "f", 4<{STAGE}>, "0", RENAME_EXCHANGE) = 0
fsync(4<{STAGE}>) = 0
fsync(3</p>) = 0
rename("/s/marker.json", "/s/marker.committed.json") = 0
fsync(7</s>) = 0
unlinkat(4<{STAGE}>, "0", 0) = 0
unlink("/s/marker.committed.json") = 0
+++ exited with 0 +++
"""
LINES = SOUND.splitlines(keepends=True)
SYNCS = [number for number, line in enumerate(LINES) if line.startswith("fsync")]


def test_a_sound_trace_is_sound() -> None:
    assert lint(SOUND) == []
    assert (markers_put(SOUND), staged(SOUND)) == (2, 1)


@pytest.mark.parametrize("number", SYNCS, ids=lambda number: LINES[number].split(")")[0])
def test_every_missing_sync_is_seen(number: int) -> None:
    assert lint("".join(LINES[:number] + LINES[number + 1 :])) != []


@pytest.mark.parametrize(
    "planted",
    [
        f"fchmod(5<{STAGE}/0>, 0755) = 0\n",
        f"utimensat(5<{STAGE}/0>, NULL, [], 0) = 0\n",
        f'fsetxattr(5<{STAGE}/0>, "user.a", "v", 1, 0) = 0\n',
        f'symlinkat("t", 4<{STAGE}>, "1") = 0\n',
        f'unlinkat(4<{STAGE}>, "9", 0) = 0\n',
        'linkat(3</p>, "a", 3</p/b>, "c", 0) = 0\n',
        'renameat(3</p>, "a", 8</p/d>, "b") = 0\n',
        'pwrite64(9</p/other>, "x", 1, 0) = 1\n',
    ],
)
def test_what_was_changed_last_must_be_synced_too(planted: str) -> None:
    first_marker = next(n for n, line in enumerate(LINES) if "prepared" in line)
    assert lint("".join([*LINES[:first_marker], planted, *LINES[first_marker:]])) != []


def test_a_directory_that_is_gone_need_not_be_synced() -> None:
    planted = (
        'renameat2(8</p/d>, "f", 4</p/.holdfast-stage-x>, "2", RENAME_NOREPLACE) = 0\n'
        'unlinkat(3</p>, "d", AT_REMOVEDIR) = 0\n'
    )
    assert lint(planted + SOUND) == []


def test_what_failed_or_is_derived_does_not_count() -> None:
    planted = (
        'openat(3</p>, "x", O_CREAT, 0600) = -1 ENOSPC (No space left on device)\n'
        'pwrite64(9</s/wb.db-wal>, "x", 1, 0) = 1\n'
    )
    assert lint(planted + SOUND) == []


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
@pytest.mark.promise("W4")
@pytest.mark.parametrize("scene", MARKED)
def test_no_marker_speaks_of_what_is_not_durable(scene: str) -> None:
    with laid_out(scene) as ground:
        ran = ground.run(Harm(("-y",), "traced with paths"))

        assert lint(ran.trace) == []
        assert markers_put(ran.trace) >= 2
        assert staged(ran.trace) >= 1


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
@pytest.mark.promise("W4")
def test_a_recovery_is_as_careful() -> None:
    with laid_out("transaction") as ground:
        exchanges = [call for call in ground.calls if call.name == "renameat2"]
        for call in exchanges[2::3]:
            ground.run(killed_at(call))
            ran = ground.run(Harm(("-y",), "traced"), deed="reopen", since=None)
            assert lint(ran.trace) == []
            assert markers_put(ran.trace) == 1


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
@pytest.mark.parametrize("habit", ["unsynced_files", "unsynced_names"])
def test_a_worker_that_does_not_sync_is_seen(habit: str) -> None:
    with laid_out("transaction") as ground:
        assert lint(ground.run(Harm(("-y",), "traced", (habit,))).trace) != []
