"""What each door to a model API over HTTP is made of. A door adds what it sends and how it reads an answer.

Reading order: `model` (a call, from request to answer), `answers` (bytes of an answer to events, or to one whole),
`failures` (what went wrong), `bodies`, `calls`, `reasoning` and `usage` (parts of what is sent and read), `headers`,
`jsontext`, `sharing` (clients from plain configuration), `listing`.
"""

from exeunt.models.door.answers import STILL_AT_WORK, AnswerReader
from exeunt.models.door.model import HttpModel, ModelStatistics

__all__ = ["STILL_AT_WORK", "AnswerReader", "HttpModel", "ModelStatistics"]
