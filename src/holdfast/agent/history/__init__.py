"""The conversation as a tree of messages, its repair, and its compaction."""
