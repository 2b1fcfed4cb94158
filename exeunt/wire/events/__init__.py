"""From the events of a session to those of the protocol.

`clock` writes times, `mapping` has one function for each kind of event (`calls` those of tool calls), `mapper` keeps
what one event needs of those before it.
"""
