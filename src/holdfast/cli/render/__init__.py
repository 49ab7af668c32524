"""Output for people and for programs, without I/O."""
