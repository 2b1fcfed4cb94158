"""Questions to the user: what a handler for them is asked and may answer. Names are those of the Copilot SDK."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import attrs

from exeunt.actors.errors import InvalidAnswer, InvalidConfiguration
from exeunt.actors.text import encodable


@attrs.frozen
class UserInputRequest:
    """A question that a tool call asks the user."""

    question: str
    choices: tuple[str, ...] = ()
    """What to choose from; empty where any text is an answer."""
    allow_freeform: bool = True
    """Whether an answer may be none of the choices."""
    request_id: str = attrs.field(default="", eq=False)
    """The id under which it can be answered from anywhere: `session.answer(request_id, ...)`."""
    tool_call_id: str = attrs.field(default="", eq=False)


@attrs.frozen
class UserInputResponse:
    """What the user said."""

    answer: str
    was_freeform: bool = True
    """Whether the answer is a text of the user's own, and none of the choices."""

    @property
    def text(self) -> str:
        """The answer as a model is told of it, in the words that clients know."""
        return f"User {'responded' if self.was_freeform else 'selected'}: {self.answer}"


UserInputHandler = Callable[[UserInputRequest, Any], Any | Awaitable[Any]]


def checked_question(question: Any, choices: Any, allow_freeform: Any) -> UserInputRequest:
    """Return the question. Raises `InvalidConfiguration` for one that nobody could be asked."""
    if not isinstance(question, str) or not question.strip():
        raise InvalidConfiguration(f"a question is a text that is not blank, not {question!r:.80}")
    offered: Any = () if choices is None else choices
    if isinstance(offered, str) or not hasattr(offered, "__iter__"):
        raise InvalidConfiguration(f"choices are a list of texts, not {choices!r:.80}")
    texts: tuple[Any, ...] = tuple(offered)
    if not all(isinstance(choice, str) and choice for choice in texts):
        raise InvalidConfiguration(f"each choice is a text that is not empty; there are {texts!r:.80}")
    if not isinstance(allow_freeform, bool):
        raise InvalidConfiguration(f"allow_freeform must be True or False, not {allow_freeform!r:.80}")
    if not texts and not allow_freeform:
        raise InvalidConfiguration(
            "without choices, a question that takes no freeform answer has none at all"
        )
    return UserInputRequest(encodable(question), tuple(map(encodable, texts)), allow_freeform)


def to_response(answer: Any, asked: UserInputRequest) -> UserInputResponse:
    """Return *answer* as a response: one already, a text, or `{"answer": ..., "was_freeform": ...}`.

    A text that is one of the choices was selected; any other is the user's own. Raises `InvalidAnswer` for anything
    else, and for a text of the user's own where only a choice is an answer.
    """
    if isinstance(answer, UserInputResponse):
        text, freeform = cast("Any", answer.answer), cast("Any", answer.was_freeform)
    elif isinstance(answer, Mapping):
        fields = cast("Mapping[str, Any]", answer)
        text, freeform = fields.get("answer"), fields.get("was_freeform", fields.get("wasFreeform"))
    else:
        text, freeform = answer, None
    if not isinstance(text, str):
        raise InvalidAnswer(
            f"{answer!r:.80} answers no question: give a text, a UserInputResponse, or a mapping with answer"
        )
    text = encodable(text)
    if not asked.allow_freeform and text not in asked.choices:
        raise InvalidAnswer(f"{text!r:.80} is none of the choices {', '.join(asked.choices)!r:.200}")
    return UserInputResponse(text, text not in asked.choices if freeform is None else bool(freeform))
