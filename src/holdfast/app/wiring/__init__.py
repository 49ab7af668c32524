"""Composition root: puts hosts, runners, consent, tokens and the local server together.

Every function here takes plain arguments, returns data or raises a failure, and prints nothing, so
that the command line, editors and the API can use it alike. Imports inside functions are
deliberate: a command must not load an agent, a provider or a workbench that it does not use.
"""
