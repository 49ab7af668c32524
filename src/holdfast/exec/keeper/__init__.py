"""The keeper: parent process of all children, which holds their pipes for exec-servers.

It runs for months while servers are upgraded around it. So it is one thread of blocking Python; it
imports only the standard library, this package and the entry code of `confine`, all at start; and
its protocol is frozen.
"""
