"""The world room."""
