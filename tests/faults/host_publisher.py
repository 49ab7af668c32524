"""Somebody who publishes a draft, as `holdfast publish` does."""

from __future__ import annotations

import sys
from pathlib import Path

from holdfast.workbench import PublishOrder, Workbench, publish

if __name__ == "__main__":
    print("publishing", flush=True)
    bench = Workbench.at(Path(sys.argv[1]), Path(sys.argv[2]))
    print(publish(bench, PublishOrder(draft=sys.argv[3])).count, flush=True)
