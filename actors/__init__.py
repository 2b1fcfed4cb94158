"""What a session is and does.

Reading order: `events` (what happens), `state` (what follows from it: context, queue, the rules for the end of a
turn; pure), `turn` (the actor and its handlers), `activities` (what takes time: model calls, tool calls, hooks),
`session` (the handles that hosts and handlers hold), `tools` (how a function becomes a tool). Beside them:
`models`, `permissions`, `hooks`, `options`, `outcomes` (the words of the borders), `errors`, `ports` (what the
room needs from outside), `callers`, `timers`, `text`.
"""
