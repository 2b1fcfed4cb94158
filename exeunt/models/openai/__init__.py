"""Models behind the OpenAI chat completions API, at OpenAI and at the many servers that speak it too.

Reading order: `model` (the client), `requests` (what is sent), `answers` (bytes to an answer), `assembly` (pieces
to an answer), `failures` (what went wrong), `jsontext`. `adapter` is for hosts with an `AsyncOpenAI` object of
their own, and the only one that needs the extra `exeunt[openai]`.
"""

from exeunt.models.openai.model import ModelStatistics, OpenAIModel

__all__ = ["ModelStatistics", "OpenAIModel"]
