"""The actor of a session, and what it does with each thing that happens.

`actor` is the mailbox and the transaction around a handler, `outbox` what a handler collects; `live` is what a running
turn is. The rest are handlers, by subject: `birth` (new, or from a log), `turns` (beginning, steps), `endings`,
`batches` (tool calls), `clears`, `truncation` (back to an earlier conversation), `aborts` (and stops), `host_calls`,
`errands` (what a host does between turns), `requests` (what calls ask people), `parking` (giving slots back),
`suspension` (a host ends while people are asked), `resumption` (going on with a turn), `recovery` (after a crash). They
call one another, as the parts of one state machine do, so they import each other as modules.
"""
