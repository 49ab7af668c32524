"""Paths that lead out of a workspace in every way that paths can: in a sandbox none arrives."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.confine.policy import Strength
from holdfast.confine.sandbox.preflight import preflight
from tests.confine.shutting import PYTHON, Stage, stage

pytestmark = [
    pytest.mark.promise("C8"),
    pytest.mark.skipif(
        preflight().strength is not Strength.FULL,
        reason=f"no full sandbox on this machine: {'; '.join(preflight().reasons)}",
    ),
]
# {o} is the directory outside. Links of the workspace: leaf and parent, dangling, in a circle.
CORPUS = (
    "{o}/target",
    "{o}//target",
    "{o}/./target",
    "{o}/../outside/target",
    "/{o}/target",
    "../outside/target",
    "../../{n}/outside/target",
    "./../outside/target",
    "..//outside//target",
    "sub/../../outside/target",
    "sub/../sub/../../outside/target",
    "leaf",
    "./leaf",
    "sub/leaf",
    "parent/target",
    "parent/../outside/target",
    "parent/./target",
    "sub/parent/target",
    "chain/target",
    "relative",
    "relative-parent/target",
    "dangling",
    "loop",
    "{o}/new",
    "parent/new",
    "../outside/new",
    "/proc/self/cwd/../outside/target",
    "/proc/self/root{o}/target",
    "/proc/1/root{o}/target",
    "/proc/1/cwd/../outside/target",
    "/proc/self/fd/../cwd/../outside/target",
    "/dev/fd/../../..{o}/target",
    "/proc/thread-self/root{o}/target",
    ".GIT/../../outside/target",
    ".git/../../outside/target",
    "sub/\u202e/../../../outside/target",
    "e\u0301/../../outside/target",
    "\u00e9/../../outside/target",
    "../outside/target.",
    "../outside./target",
    "../OUTSIDE/target",
    "../outside/target\0.txt",
    "a" * 5000,
    "../outside/" + "a" * 300,
    "~/../outside/target",
    "$HOME/../outside/target",
    "%2e%2e/outside/target",
    "..\\outside\\target",
    " ../outside/target",
    "../outside/target\n",
)
SCRIPT = """
import json, os, shutil, sys
done = []
for path in json.loads(sys.argv[1]):
    def attempt(name, act):
        try:
            act()
        except (OSError, ValueError, shutil.Error):
            return
        done.append([name, path])
    attempt("read", lambda: done.append(["said", open(path).read()]))
    attempt("write", lambda: open(path, "w").write("harmed"))
    attempt("append", lambda: open(path, "a").write("harmed"))
    attempt("link", lambda: (os.link(path, "second"), open("second", "w").write("harmed")))
    attempt("chmod", lambda: os.chmod(path, 0o777))
    attempt("truncate", lambda: os.truncate(path, 0))
    attempt("rename in", lambda: os.rename(path, "stolen"))
    attempt("rename out", lambda: os.rename("file", path))
    attempt("symlink", lambda: os.symlink("/etc/passwd", path))
    attempt("mkdir", lambda: os.mkdir(path))
    attempt("remove", lambda: os.remove(path))
    attempt("remove all", lambda: shutil.rmtree(os.path.dirname(path) or "nothing"))
print(json.dumps(done))
"""


def _set(here: Stage) -> str:
    (here.workspace / "sub").mkdir()
    links = {
        "leaf": here.outside / "target",
        "parent": here.outside,
        "sub/leaf": here.outside / "target",
        "sub/parent": here.outside,
        "chain": here.workspace / "parent",
        "relative": Path("../outside/target"),
        "relative-parent": Path("../outside"),
        "dangling": here.outside / "dangling",
        "loop": Path("loop"),
    }
    for name, target in links.items():
        (here.workspace / name).symlink_to(target)
    names = {"o": str(here.outside), "n": here.workspace.parent.name}
    return json.dumps(
        [path.replace("{o}", names["o"]).replace("{n}", names["n"]) for path in CORPUS]
    )


def _outside(here: Stage) -> dict[str, tuple[int, str]]:
    return {path.name: (path.lstat().st_mode, path.read_text()) for path in here.outside.iterdir()}


def test_there_are_enough_of_them() -> None:
    assert len(set(CORPUS)) == len(CORPUS) >= 40


def test_nothing_outside_is_read_or_changed(tmp_path: Path) -> None:
    here = stage(tmp_path)
    paths, before = _set(here), _outside(here)
    policy = replace(here.policy, readable=PYTHON)
    done = here.run(sys.executable, "-I", "-c", SCRIPT, paths, policy=policy)
    assert done.status == 0, done.complained
    assert "target" not in [said for kind, said in json.loads(done.said) if kind == "said"]
    assert _outside(here) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside", "state", "workspace"]


def test_without_a_sandbox_they_arrive(tmp_path: Path) -> None:
    here = stage(tmp_path)
    paths, before = _set(here), _outside(here)
    gentle = SCRIPT.partition('    attempt("remove all"')[0] + "print(json.dumps(done))\n"
    command = [sys.executable, "-I", "-c", gentle, paths]
    done = subprocess.run(command, cwd=here.workspace, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "target" in [said for kind, said in json.loads(done.stdout) if kind == "said"]
    assert _outside(here) != before


PATCH = """\
diff --git a/way b/way
new file mode 120000
--- /dev/null
+++ b/way
@@ -0,0 +1 @@
+{o}
\\ No newline at end of file
diff --git a/way/harmed b/way/harmed
new file mode 100644
--- /dev/null
+++ b/way/harmed
@@ -0,0 +1 @@
+harmed
"""


@pytest.mark.parametrize("tool", ["git apply --unsafe-paths", "git apply", "patch -p1 -f"])
def test_a_patch_leads_nowhere_either(tmp_path: Path, tool: str) -> None:
    here = stage(tmp_path)
    (here.workspace / "a.patch").write_text(PATCH.replace("{o}", str(here.outside)))
    (here.workspace / "b.patch").write_text(PATCH.partition("diff --git a/way/harmed")[0])
    here.shell(
        f"{tool} < b.patch; ln -sfn {here.outside} way; {tool} < a.patch; echo x > way/harmed"
    )
    assert sorted(path.name for path in here.outside.iterdir()) == ["secret", "target"]
