"""Sessions as clients see them: who is attached, who serves what, and what waits for a client's answer.

Reading order: `client` (what one connection registered for one session), `served` (one session), `asking` (what it
waits for), `hub` (all of them, and the handlers that they call), `opening` and `leaving` (how clients come and go),
`changing` (what a session runs with, anew), `showing` (what follows from its events), `reading` (logs as clients see
them). Then what a session is made of: `configuration`, `models` with `catalogue`, `carrying`, `pricing` and `tokens`,
`system_message`, `tools`, `results`, `decisions`, `hooks`; what messages bring: `attachments`, `attached_files`; and
what its clients can do: `abilities`.
"""
