"""Models behind OpenAI's Responses API, at OpenAI and at the servers that speak it too.

Reading order: `model` (the client), `requests` (what is sent), `kept` (what a model is given back of its reasoning),
`answers` (events to an answer), `assembly` (pieces to an answer), `failures` (what went wrong); `sockets` is the same
over web sockets.
"""

from exeunt.models.responses.model import ResponsesModel

__all__ = ["ResponsesModel"]
