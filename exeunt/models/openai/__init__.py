"""Models behind the OpenAI chat completions API, at OpenAI and at the many servers that speak it too.

Reading order: `model` (the client), `requests` (what is sent), `answers` (events to an answer), `assembly` (pieces
to an answer), `provider` (from plain configuration). `adapter` is for hosts with an `AsyncOpenAI` object of their
own, and the only one that needs the extra `exeunt[openai]`.
"""

from exeunt.models.openai.model import ModelStatistics, OpenAIModel

__all__ = ["ModelStatistics", "OpenAIModel"]
