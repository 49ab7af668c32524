"""Places: a view of a project in mount and user namespaces, held by one process."""
