"""The small parent of all processes: it holds their pipes and does nothing else.

It runs for months while servers are upgraded around it. So it is one thread of blocking Python, it
imports the standard library, this package and the way into confinement alone, all at its start, and
what it says is frozen.
"""
