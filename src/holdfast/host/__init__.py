"""A conversation that nothing can interrupt: one process holds its runner and its journal."""
