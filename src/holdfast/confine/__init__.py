"""Where a process runs and what it can touch: places, namespaces, sandboxes.

What it offers is loaded when it is first asked for: the keeper has a part of this room in its
memory, and must stay small.
"""
