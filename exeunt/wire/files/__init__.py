"""The files of a session: its transcript, its workspace, and results too long for a model to read at once.

Who keeps them is behind a small port, `store`: `folder` is one on the disk of the server, `remote` is the client that
serves them by `sessionFs`. Reading order: `paths`, `store`, `folder`, `remote`; `transcript` (`events.jsonl`),
`workspace` (`workspace.yaml`, `plan.md`, `files/`), `checkpoints`, `results`; `session` has all of them for one
session, `opening` says who keeps the files of which; `rebuilding` makes a session again of its transcript.

The journal is the truth about a session. Nothing of a turn depends on its files, nor waits for them without a bound.
"""
