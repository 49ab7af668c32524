"""Commands that look harmless, or get past lists of commands: none gets out of a sandbox."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from holdfast.confine.policy import Strength
from holdfast.confine.sandbox.preflight import preflight
from tests.confine.shutting import PATH, Stage, stage

pytestmark = [
    pytest.mark.promise("C13"),
    pytest.mark.skipif(
        preflight().strength is not Strength.FULL,
        reason=f"no full sandbox on this machine: {'; '.join(preflight().reasons)}",
    ),
]
# $O is the directory outside; each either shows $O/secret or makes $O/$N.
COMMANDS = (
    "find . -maxdepth 0 -exec touch $O/$N ;",
    "find . -maxdepth 0 -execdir touch $O/$N ;",
    "find . -maxdepth 0 -fprint $O/$N",
    "find . -maxdepth 0 -fprintf $O/$N x",
    "find . -maxdepth 0 -fls $O/$N",
    "sed -n '1e touch '$O/$N file",
    'sed "w $O/$N" file',
    'sed -n "1r $O/secret" file; sed "r $O/secret" file',
    "awk 'BEGIN { system(\"touch '$O/$N'\") }'",
    "awk 'BEGIN { print 1 > \"'$O/$N'\" }'",
    "awk 'BEGIN { while ((getline l < \"'$O/secret'\") > 0) print l }'",
    "env X=1 touch $O/$N",
    "env -i /usr/bin/touch $O/$N",
    "env -S 'touch '$O/$N",
    "xargs -a file -I{} touch $O/$N",
    "echo $O/$N | xargs touch",
    'tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec="touch $O/$N" file',
    "tar -cf $O/$N file",
    "tar -cf - --use-compress-program=\"sh -c 'touch $O/$N; cat'\" file",
    "tar -xOf <(:) 2>/dev/null; cp file $O/$N",
    "cp $O/secret copied && cat copied",
    "ln -s $O/secret way && cat way",
    "ln -sfn $O through && touch through/$N",
    "dd if=file of=$O/$N",
    "dd if=$O/secret",
    "tee $O/$N < file",
    "sort -o $O/$N file",
    "sort --compress-program=sh file; sort $O/secret",
    "split -b 1 -a 5 file $O/x && mv $O/xaaaaa $O/$N",
    "install file $O/$N",
    "mkdir $O/$N",
    "mv $(mktemp -p $O) $O/$N",
    "patch -o $O/$N file /dev/null; cp file $O/$N",
    "git -c core.pager='touch '$O/$N' #' -c core.editor=x --paginate version; git --version",
    "git -c alias.x='!touch '$O/$N x",
    "git diff --no-index --output=$O/$N /dev/null file; test -e $O/$N",
    "git diff --no-index /dev/null $O/secret",
    "git grep --no-index -h secret -- $O/secret",
    "GIT_EXTERNAL_DIFF='touch '$O/$N git diff --no-index --ext-diff /dev/null file",
    "GIT_PAGER='touch '$O/$N git -c core.pager= --version; env GIT_TRACE=$O/$N git version",
    "git init -q --separate-git-dir=$O/$N made",
    "git blame --no-pager x; git --no-pager diff --no-index -- $O/secret file",
    "perl -e 'open(F, \">$ARGV[0]\")' $O/$N",
    "perl -pe 1 $O/secret",
    "python3 -c 'import sys; open(sys.argv[1], \"w\")' $O/$N",
    "python3 -c 'import pathlib, sys; print(pathlib.Path(sys.argv[1]).read_text())' $O/secret",
    "cat${IFS}$O/secret",
    "c''at $O/sec*",
    "cat $O/s?cret",
    "{ cat,$O/secret; }; cat $O/[s]ecret",
    'eval "$(echo Y2F0ICRPL3NlY3JldA== | base64 -d)"',
    "$(printf '\\143\\141\\164') $O/secret",
    "sh -c 'cat $O/secret'",
    "bash -c 'cat < $O/secret'",
    "bash -c 'exec 3<>$O/$N'",
    "bash -c 'coproc cat $O/secret; cat <&${COPROC[0]}'",
    "bash -c 'mapfile -t x < $O/secret; echo ${x[@]}'",
    "PATH=.:$PATH; printf '#!/bin/sh\\ntouch $O/$N' > lister; chmod +x lister; lister",
    "LD_PRELOAD= touch $O/$N",
    "LD_LIBRARY_PATH=. cat $O/secret",
    "nohup touch $O/$N",
    "timeout 5 touch $O/$N",
    "nice touch $O/$N",
    "stdbuf -o0 cat $O/secret",
    "setsid touch $O/$N",
    "strings $O/secret || cat $O/secret",
    "diff --to-file=/dev/null $O/secret",
    "grep -r secret $O",
    "head -c 100 $O/secret",
    "od -c $O/target; rev $O/secret | rev",
    "make -f - <<< 'x:; @touch '$O/$N",
    "cd .. && cat outside/secret",
    "cat ../outside/secret",
    "cat /proc/self/cwd/../outside/secret",
    "cat /proc/1/root$O/secret || cat $O/secret",
    "cat /dev/fd/3 3< $O/secret",
    "chmod 777 $O/target; touch $O/$N",
    "truncate -s 0 $O/$N",
)


def _script(here: Stage) -> str:
    lines = [f"export O='{here.outside}'"]
    for number, command in enumerate(COMMANDS):
        lines.append(f"export N=made-{number}; echo '== {number}'")
        quoted = command.replace("'", "'\\''")
        lines.append(f"timeout 10 bash -c '{quoted}' 2>/dev/null </dev/null")
    return "\n".join([*lines, "echo '== end'"])


def _successful(here: Stage, said: str) -> set[int]:
    pieces = said.split("== ")[1:]
    shown = {int(p.split("\n")[0]) for p in pieces[:-1] if "a secret" in p or "s   e   c" in p}
    made = {int(path.name.partition("-")[2]) for path in here.outside.glob("made-*")}
    return shown | made


def test_there_are_enough_of_them() -> None:
    assert len(set(COMMANDS)) == len(COMMANDS) >= 60


def test_without_a_sandbox_they_get_through(tmp_path: Path) -> None:
    here = stage(tmp_path)
    done = subprocess.run(
        ["bash", "-c", _script(here)],
        cwd=here.workspace,
        env={**PATH, "HOME": str(here.workspace)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    through = _successful(here, done.stdout)
    assert len(through) >= 60, [COMMANDS[n] for n in range(len(COMMANDS)) if n not in through]


def test_in_a_sandbox_none_of_them_does(tmp_path: Path) -> None:
    here = stage(tmp_path)
    done = here.run("bash", "-c", _script(here))
    assert done.said.endswith("== end\n")
    assert _successful(here, done.said) == set()
    assert sorted(path.name for path in here.outside.iterdir()) == ["secret", "target"]
    assert (here.outside / "target").read_text() == "target"
