"""Object store: append-only segments, their index, and the record and tree formats."""
