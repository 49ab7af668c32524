"""Contents of a commit come from the store as they are, however many and however odd."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.workbench import CommitOrder, PublishOrder, publish
from holdfast.workbench.model import DraftMode
from tests.workbench.benches import bench_at
from tests.workbench.repositories import begin, git

MANY = 1_050


@pytest.mark.promise("W14")
def test_many_files_and_bytes_of_every_kind(tmp_path: Path) -> None:
    with bench_at(tmp_path / "bench", DraftMode.COPY) as bench:
        (bench.project / ".gitattributes").write_text("* text=auto eol=crlf\n")
        begin(bench.project)
        bench.draft()
        bench.run(
            f"i=0; while [ $i -lt {MANY} ]; do echo $i > f$i; i=$((i+1)); done;"
            " printf 'a\\r\\nb\\0\\377' > odd; : > empty; head -c 9000000 /dev/zero > large"
        )
        publish(bench.workbench, PublishOrder(commit=CommitOrder()))
        listed = git(bench.project, "ls-tree", "-r", "--name-only", "HEAD").split()
        assert len(listed) == MANY + 3 + 3
        assert git(bench.project, "cat-file", "blob", "HEAD:f1049") == "1049\n"
        assert git(bench.project, "cat-file", "-s", "HEAD:large").strip() == "9000000"
        for name in ("odd", "empty"):
            raw = git(bench.project, "hash-object", "--no-filters", name).strip()
            assert git(bench.project, "rev-parse", f"HEAD:{name}").strip() == raw
