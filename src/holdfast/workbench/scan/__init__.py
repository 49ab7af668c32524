"""Scans of directories: what changed since the last scan, by stat and content."""
