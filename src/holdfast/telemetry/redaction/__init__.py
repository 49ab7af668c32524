"""Redaction: find secrets in text and values, and remove them."""
