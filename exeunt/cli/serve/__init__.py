"""`exeunt serve`, and the executable `exeunt-runtime` that clients start by themselves.

`provider` finds the model of sessions that bring none, `switches` reads what variables turn on, `telemetry` where
traces go, `scraping` where metrics are, `serving` runs a server, `runtime` takes the flags with which clients start
one.
"""
