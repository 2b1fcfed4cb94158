"""Sessions as clients see them: who is attached, who serves what, and what waits for a client's answer.

Reading order: `client` (what one connection registered for one session), `served` (one session), `hub` (all of them,
and the handlers that the sessions call), then what a session is made of: `configuration`, `tools`, `results`,
`decisions`, `hooks`, `system_message`, `providers`.
"""
