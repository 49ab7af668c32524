"""Small programs that try one thing on this machine and print what happened.

Each runs in a process of its own, so that one that hangs, crashes or ends up in another namespace
takes nobody along. A dozen of them start at once, so they import almost nothing; their facts are
plain objects here and get their types where they are read (`app/core`).
"""
