"""Holdfast runs coding agents so that nothing is lost."""

__version__ = "0.1.0"
