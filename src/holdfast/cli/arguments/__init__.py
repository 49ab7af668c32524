"""Declarations of commands and options; help, parser and reference are made from them."""
