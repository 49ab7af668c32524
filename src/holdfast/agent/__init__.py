"""Our own coding agent: a conversation with a model that uses tools, and loses nothing."""
