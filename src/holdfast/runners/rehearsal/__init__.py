"""The rehearsal runner: a scripted agent in a process of its own."""
