"""Small programs that try one thing on this machine and print what happened.

Each runs in a process of its own, so that one that hangs, crashes or ends up in another namespace
does not take the doctor down. A dozen of them start at once, so they import almost nothing; they
print plain JSON, which `app/doctor` decodes into typed facts.
"""
