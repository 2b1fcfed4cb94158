"""From the events of a session to those of the protocol.

`clock` writes times, `mapping` names a function for each kind of event: `life` has those of the session as a whole,
`conversation` of messages and answers, `calls` of tool calls, `budget` of credits, `outside` of what the protocol does
not have. `mapper` keeps what one event needs of those before it.
"""
