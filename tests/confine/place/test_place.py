"""A place shows a draft to everyone who joins it, leads nowhere else, and ends whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.confine.failures import PlaceHeld, PlaceLost, PlaceStuck, PlaceUnavailable
from holdfast.confine.place.creation import create
from holdfast.confine.place.place import Place, end, find, places
from holdfast.world import system_process
from tests.confine.workshop import PYTHON, Workshop, run

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.timeout(method="signal"),  # no thread beside us: we fork
]

SEVENTEEN = str(Path(__file__).with_name("seventeen.py"))
WHO = """
import os
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status"))
print(os.getresuid(), os.getresgid())
print({name: int(status[name], 16) for name in status if name.startswith("Cap")})
print(int(status["NoNewPrivs"]), int(status["Seccomp"]), len(status["NSpid"].split()))
"""


def test_what_is_written_inside_is_in_the_draft_alone(workshop: Workshop) -> None:
    with workshop.place() as place:
        said = workshop.sh(place, "echo new > new; echo more >> old; rm link; ls; cat old")

        assert said == "below\nnew\nold\noldmore\n"
        assert sorted(path.name for path in (workshop.draft / "upper").iterdir()) == [
            "link",
            "new",
            "old",
        ]


def test_seventeen_file_operations_work_in_two_processes_and_a_second_mount_is_refused(
    workshop: Workshop,
) -> None:
    with workshop.place() as place:
        for _ in range(2):
            with pytest.raises(PlaceHeld):
                create(workshop.spec)

        assert workshop.run(place, *PYTHON, SEVENTEEN) == (0, "17 done\n")
        assert workshop.sh(place, "ls") == "below\nmoved\nnamed\nnew\nold\npointer\ntarget\ntwin\n"


def test_a_process_inside_is_not_root_and_can_become_nobody_else(workshop: Workshop) -> None:
    with workshop.place() as place:
        said = workshop.look(place, WHO)

    nothing = dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), 0)
    assert said == f"(1000, 1000, 1000) (1000, 1000, 1000)\n{nothing}\n1 0 1\n"


def test_neither_directory_nor_descriptor_of_ours_leads_outside(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workshop.project)
    before = [os.open(workshop.project, os.O_RDONLY | os.O_DIRECTORY) for _ in range(5)]
    for descriptor in before:
        os.set_inheritable(descriptor, True)
    looked = """
import os
print(sorted(map(int, os.listdir("/proc/self/fd")))[:-1])
open("by-cwd", "w").close()
for number in range(3, 64):
    try:
        os.open("by-descriptor", os.O_CREAT | os.O_WRONLY, dir_fd=number)
        print(number, "leads somewhere")
    except OSError:
        pass
"""
    with workshop.place() as place:
        assert workshop.look(place, looked) == "[0, 1, 2]\n"
        assert place.files.names(os.fsencode(workshop.project / "by-cwd").rpartition(b"/")[0])[0]
        assert (workshop.draft / "upper" / "by-cwd").exists()
    for descriptor in before:
        os.close(descriptor)


@pytest.mark.parametrize("way", ["root", "cwd", "fd/0", "fd/3", "exe", "environ", "mem", "ns/mnt"])
def test_the_holder_shows_nothing_of_itself(workshop: Workshop, way: str) -> None:
    look = f"""
import os
try:
    os.open("/proc/1/{way}", os.O_RDONLY)
    print("open")
except OSError as error:
    print(type(error).__name__)
"""
    with workshop.place() as place:
        assert workshop.look(place, look) == "PermissionError\n"


def test_the_files_of_the_draft_cannot_be_reached_from_inside(workshop: Workshop) -> None:
    try_all = f"""
for way in ls 'chmod 700' 'chmod -R 777' 'touch' rmdir; do
  $way {workshop.draft} {workshop.draft}/upper/x {workshop.draft}/lock 2>/dev/null && echo "$way!"
done
grep -c ' {workshop.draft} ' /proc/self/mountinfo
"""
    with workshop.place() as place:
        assert workshop.sh(place, try_all) == "1\n"


@pytest.mark.parametrize(
    "way",
    [
        "umount {project}",
        "umount -l {project}",
        "umount /proc",
        "mount -o remount,ro {project}",
        "mount --bind / /mnt",
        "mount -t tmpfs none {project}",
        "unshare -Ur umount {project}",
        "unshare -Urm umount {project}",
        "unshare -Urm umount -l {project}",
        "unshare -Urmpf umount {draft}",
        "nsenter -t 1 -m true",
        "nsenter -t 1 -U true",
    ],
)
def test_nobody_inside_can_unmount_or_leave(workshop: Workshop, way: str) -> None:
    command = way.format(project=workshop.project, draft=workshop.draft)
    with workshop.place() as place:
        status, said = workshop.run(place, "/bin/sh", "-c", command)

        assert status != 0, said
        assert workshop.sh(place, "touch new; ls") == "below\nlink\nnew\nold\n"


def test_signals_from_inside_do_not_end_the_holder(workshop: Workshop) -> None:
    every = "; ".join(f"kill -{number} 1" for number in range(1, 32)) + "; kill -9 -1; true"
    with workshop.place() as place:
        workshop.run(place, "/bin/sh", "-c", every)

        assert workshop.sh(place, "echo alive") == "alive\n"
        assert not place.is_lost


def test_orphans_are_reaped(workshop: Workshop) -> None:
    bear = "for n in 1 2 3 4 5; do (true & true); done; exit 0"
    count = """
import os, time
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    living = [name for name in os.listdir("/proc") if name.isdecimal()]
    states = [open(f"/proc/{pid}/stat").read().split()[2] for pid in living]
    if "Z" not in states and len(states) == 2:
        break
print(len(states), "Z" in states)
"""
    with workshop.place() as place:
        workshop.sh(place, bear)

        assert workshop.look(place, count) == "2 False\n"


def test_a_place_is_found_by_its_draft_and_joined_by_a_stranger(workshop: Workshop) -> None:
    with workshop.place() as place:
        found = find(workshop.draft)
        assert found is not None
        with found:
            workshop.sh(place, "echo said > said")

            assert found.holder == place.holder
            assert workshop.sh(found, "cat said") == "said\n"


def test_a_place_is_found_when_its_record_is_lost_or_of_another_draft(workshop: Workshop) -> None:
    with workshop.place() as place:
        record = workshop.draft / "holder.json"
        moved = workshop.draft.with_name("moved")
        moved.mkdir()
        (moved / "holder.json").write_bytes(record.read_bytes())
        record.unlink()

        found = find(workshop.draft)
        assert found is not None
        with found:
            assert found.holder == place.holder
        assert find(moved) is None


@pytest.mark.parametrize(
    "lie",
    [{"started": 1}, {"boot": "another"}, {"namespace": 1}, {"pid": 1}, {"version": 99}],
)
def test_a_record_of_someone_else_is_not_believed(
    workshop: Workshop, lie: dict[str, object]
) -> None:
    with workshop.place():
        record = json.loads((workshop.draft / "holder.json").read_bytes())
    (workshop.draft / "holder.json").write_text(json.dumps({**record, **lie}))

    assert find(workshop.draft) is None
    end(workshop.draft)
    assert not (workshop.draft / "holder.json").exists()


def test_a_freed_lock_does_not_make_a_held_place_free(workshop: Workshop) -> None:
    with workshop.place() as place:
        (workshop.draft / "lock").unlink()  # as if nobody had it

        with pytest.raises(PlaceHeld):
            create(workshop.spec)
        assert workshop.sh(place, "ls") == "below\nlink\nold\n"


def test_a_draft_can_be_opened_again_with_all_that_was_written(workshop: Workshop) -> None:
    with workshop.place() as place:
        workshop.sh(place, "echo kept > kept; rm -r below")
    with workshop.place() as place:
        assert workshop.sh(place, "ls; cat kept") == "kept\nlink\nold\nkept\n"


def test_the_end_kills_everyone_inside_and_can_be_repeated(workshop: Workshop) -> None:
    script = "setsid sleep 100 & unshare -Urpf sleep 100 & echo $$; exec sleep 100"
    with create(workshop.spec) as place:
        inside = subprocess.Popen(
            [sys.executable, "-c", _JOIN, str(workshop.draft), script], stdout=subprocess.PIPE
        )
        assert inside.stdout is not None
        inside.stdout.readline()
        listed = next(each for each in places() if each.holder == place.holder)
        assert listed.processes >= 2

        end(workshop.draft)
        end(workshop.draft)

        assert place.is_lost
        with pytest.raises(PlaceLost):
            _ = place.files
        assert inside.wait(60) == 128 + signal.SIGKILL
        inside.stdout.close()


def test_a_holder_whose_number_somebody_else_has_now_is_gone(workshop: Workshop) -> None:
    with workshop.place() as place:
        assert place.holder is not None
        with pytest.raises(PlaceLost):
            Place.held_by(replace(place.holder, pid=1))


_JOIN = """
import os, sys
from holdfast.confine.place.place import find
from holdfast.confine.entry import Entry, enter
with find(sys.argv[1]) as place:
    entry = Entry(("/bin/sh", "-c", sys.argv[2]), {"PATH": "/usr/bin:/bin"}, "/", "/bin/sh",
                  {0: 0, 1: 1, 2: 2}, place.namespaces)
    code = os.waitstatus_to_exitcode(os.waitpid(enter(entry), 0)[1])
sys.exit(128 - code if code < 0 else code)
"""


def test_a_stopped_holder_can_be_ended(workshop: Workshop) -> None:
    with create(workshop.spec) as place:
        assert place.holder is not None
        os.kill(place.holder.pid, signal.SIGSTOP)

        end(workshop.draft)

        assert place.is_lost


FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.mark.skipif(not os.access(FREEZER, os.W_OK), reason="there is no freezer of ours")
def test_an_end_that_the_kernel_holds_up_is_named(workshop: Workshop) -> None:
    group = FREEZER / f"holdfast-{os.getpid()}"
    group.mkdir()
    with create(workshop.spec) as place:
        assert place.holder is not None
        (group / "cgroup.procs").write_text(str(place.holder.pid))
        (group / "freezer.state").write_text("FROZEN")  # not even SIGKILL reaches it there
        try:
            with pytest.raises(PlaceStuck) as raised:
                end(workshop.draft, patience=0.05)
            with pytest.raises(PlaceHeld):
                create(workshop.spec)
        finally:
            (group / "freezer.state").write_text("THAWED")
        assert (raised.value.pid, raised.value.waited) == (place.holder.pid, 0.05)
        end(workshop.draft)
    group.rmdir()


def test_nobody_can_join_a_place_that_is_gone(workshop: Workshop) -> None:
    with create(workshop.spec) as place:
        end(workshop.draft)
        with pytest.raises(OSError):
            workshop.run(place, "/bin/true")
        assert place.holder is not None
        with pytest.raises(PlaceLost):
            Place.held_by(place.holder)


def test_the_machine_itself_is_a_place_too(tmp_path: Path) -> None:
    with Place.plain() as place:
        assert (place.holder, place.namespaces, place.is_lost) == (None, (), False)
        place.files.make_directory(os.fsencode(tmp_path / "made"))
        status, said = run(place, "/bin/pwd", cwd=str(tmp_path / "made"))

    assert (status, said) == (0, f"{tmp_path}/made\n")


def test_a_directory_without_a_place_has_none_and_ends_at_once(tmp_path: Path) -> None:
    assert find(tmp_path / "nowhere") is None
    end(tmp_path / "nowhere")
    assert find(tmp_path) is None
    end(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_holder_lives_without_its_maker(workshop: Workshop) -> None:
    made = subprocess.run(
        [sys.executable, "-c", _MAKE, str(workshop.draft), str(workshop.project)], check=True
    )
    assert made.returncode == 0
    with pytest.raises(PlaceHeld):
        create(workshop.spec)
    found = find(workshop.draft)
    assert found is not None
    with found:
        assert found.holder is not None
        assert system_process(found.holder.pid) is not None
        assert workshop.sh(found, "ls") == "below\nlink\nold\n"
    end(workshop.draft)


_MAKE = """
import os, signal, sys
from holdfast.confine.place.creation import create
from holdfast.confine.model import PlaceSpec
create(PlaceSpec(directory=sys.argv[1], project=sys.argv[2]))
"""


def test_where_there_are_no_namespaces_everything_says_so_or_does_nothing(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "platform", "darwin")
        with pytest.raises(PlaceUnavailable) as raised:
            create(workshop.spec)
        assert (find(workshop.draft), list(places())) == (None, [])
        end(workshop.draft)

    assert "Linux" in raised.value.reason
