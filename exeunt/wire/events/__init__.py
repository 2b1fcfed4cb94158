"""From the events of a session to those of the protocol.

`clock` writes times; `mapping`, `of_session` and `of_tools` have one function for each kind of event; `mapper` keeps
what one event needs of those before it.
"""
