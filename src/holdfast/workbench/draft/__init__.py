"""Drafts: their records, overlay mounts, copies and views."""
