"""Models behind the Messages API, at Anthropic and at others who speak it too.

Reading order: `model` (the client), `requests` (what is sent) with `blocks`, `effort` (how much a model may think) and
`thoughts` (what it is given back of them), `answers` (events to an answer), `assembly` (blocks to an answer),
`citing`, `provider` (from plain configuration).
"""

from exeunt.models.anthropic.model import AnthropicModel
from exeunt.models.door.model import ModelStatistics

__all__ = ["AnthropicModel", "ModelStatistics"]
