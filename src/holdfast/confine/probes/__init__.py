"""Ways out of a sandbox, each tried: first without one, so that it can fail, then in one."""
