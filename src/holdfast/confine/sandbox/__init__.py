"""Sandboxes: bubblewrap and seccomp, or Landlock."""
