"""A model that answers from a script, keeps every request, and refuses requests that no model would take."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Self

import msgspec
import trio

from exeunt.actors.errors import InvalidConfiguration, InvariantViolation, ScriptExhausted
from exeunt.actors.models import (
    Message,
    ModelDelta,
    ModelError,
    ModelRequest,
    ModelResponse,
    Role,
    ToolDefinition,
)
from exeunt.testing._plan import Plan, Script, compile_reply, response_of
from exeunt.testing.invariants import check_request, describe_messages
from exeunt.testing.replies import Reply


class RecordedRequest(msgspec.Struct, frozen=True):
    """A request as it was when it arrived. Messages are immutable, so keeping them costs no copy."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    session_id: str
    turn_id: str

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of the messages, in order."""
        return tuple(message.role for message in self.messages)

    @property
    def contents(self) -> tuple[str, ...]:
        """The texts of the messages, in order."""
        return tuple(message.content for message in self.messages)

    @property
    def results(self) -> dict[str, str]:
        """The text of each tool result, by the id of its call."""
        return {
            message.tool_call_id: message.content
            for message in self.messages
            if message.role == "tool" and message.tool_call_id is not None
        }

    def __str__(self) -> str:
        return describe_messages(self.messages)


class ScriptedModel:
    """A `ModelClient` whose replies are given out in the order of the requests, whichever session asks.

    `complete` and `stream` take from the same script. A reply is taken, and its request recorded, when the
    request arrives: for a stream when its first piece is asked for. A cancelled call has used up its reply.

    Each request is checked on arrival (`check_request`). A session may turn what this model raises into an
    ordinary error of its turn, so whatever went wrong is also kept: end a test with `verify()`.
    """

    def __init__(
        self,
        replies: Sequence[Reply],
        *,
        provider: str = "scripted",
        cycle: bool = False,
        default: Reply | None = None,
        check: bool = True,
        record: bool = True,
    ) -> None:
        """Make a model that answers with *replies*, then with *default*, or from the beginning if *cycle*.

        *provider* is the name under which its calls are counted. For load tests, switch off *check* and
        *record*: they cost time and memory in the length of each request.

        Raises `InvalidConfiguration` if one of the replies is none.
        """
        self.provider = provider
        self.requests: list[RecordedRequest] = []
        """Every request, oldest first. Empty if made with `record=False`."""
        self.violations: list[Exception] = []
        """What was wrong with requests or with the script, oldest first."""
        self._cycle = cycle
        self._default = None if default is None else compile_reply(default)
        self._check = check
        self._record = record
        self._script = Script(_compile(replies), cycle, self._default)
        self._plans_of: Callable[[str], Sequence[Plan]] | None = None
        self._scripts: dict[str, Script] = {}
        self._calls = self._ids = self._cancelled = self._in_flight = self._max_in_flight = 0

    @classmethod
    def per_session(
        cls,
        replies: Sequence[Reply] | Callable[[str], Sequence[Reply]],
        *,
        provider: str = "scripted",
        cycle: bool = False,
        default: Reply | None = None,
        check: bool = True,
        record: bool = True,
    ) -> Self:
        """Make a model that plays a script of its own to each session.

        *replies* is the script that each gets from its beginning, or a function from session id to script.
        The other arguments are those of `ScriptedModel`.
        """
        model = cls((), provider=provider, cycle=cycle, default=default, check=check, record=record)
        if callable(replies):
            model._plans_of = lambda session_id: _compile(replies(session_id))
        else:
            plans = _compile(replies)
            model._plans_of = lambda _: plans
        return model

    @property
    def calls(self) -> int:
        """Requests so far."""
        return self._calls

    @property
    def cancelled(self) -> int:
        """Calls that were cancelled, and streams that were closed, before they had given their answer."""
        return self._cancelled

    @property
    def in_flight(self) -> int:
        """Calls that have not ended yet."""
        return self._in_flight

    @property
    def max_in_flight(self) -> int:
        """The most calls that were in flight at once."""
        return self._max_in_flight

    @property
    def remaining(self) -> int:
        """Replies not given yet: of this round if the script cycles, of all sessions that have asked."""
        scripts = [self._script] if self._plans_of is None else self._scripts.values()
        return sum(len(script.plans) - script.place for script in scripts)

    def verify(self, *, all_given: bool = True) -> None:
        """Raise `InvariantViolation` with all that went wrong.

        That is invalid requests, requests beyond the script, reply functions that raised, and, unless
        *all_given* is false or the script cycles, replies that nobody asked for.
        """
        problems = [f"{type(violation).__name__}: {violation}" for violation in self.violations]
        if all_given and not self._cycle and self.remaining:
            problems.append(f"{self.remaining} replies were never asked for; {self._calls} requests came.")
        if problems:
            cause = self.violations[0] if self.violations else None
            raise InvariantViolation("\n".join(problems)) from cause

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer *request* with the next reply. See `ModelClient.complete`.

        Raises `ModelError` where the script says so, `ScriptExhausted` after its end, and
        `InvariantViolation` for a request that is not valid.
        """
        plan = self._take(request)
        self._in_flight += 1
        if self._in_flight > self._max_in_flight:
            self._max_in_flight = self._in_flight
        try:
            delay = plan.delay
            if plan.function is not None:
                plan, delay = await self._resolve(plan, request)
            if delay:
                await trio.sleep(delay)
            else:
                await trio.lowlevel.checkpoint()
            if plan.hangs:
                await trio.sleep_forever()
            if plan.error is not None:
                raise plan.error()
            return plan.response or response_of(plan, self._new_id)
        except trio.Cancelled:
            self._cancelled += 1
            raise
        finally:
            self._in_flight -= 1

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Answer *request* with the next reply in pieces. See `ModelClient.stream`. Raises as `complete`."""
        plan = self._take(request)
        self._in_flight += 1
        self._max_in_flight = max(self._max_in_flight, self._in_flight)
        ended = False
        try:
            delay = plan.delay
            if plan.function is not None:
                plan, delay = await self._resolve(plan, request)
            deltas = [ModelDelta(text=piece) for piece in plan.pieces]
            if plan.reasoning:
                deltas.insert(0, ModelDelta(reasoning=plan.reasoning))
            await trio.sleep(delay)
            for number, delta in enumerate(deltas):
                if number:
                    await trio.sleep(plan.gap)
                yield delta
            if plan.hangs:
                await trio.sleep_forever()
            ended = True
            if plan.error is not None:
                raise plan.error()
            yield response_of(plan, self._new_id)
        except (trio.Cancelled, GeneratorExit):
            if not ended:
                self._cancelled += 1
            raise
        finally:
            self._in_flight -= 1

    def _take(self, request: ModelRequest) -> Plan:
        self._calls += 1
        if self._record:
            self.requests.append(
                RecordedRequest(tuple(request.messages), request.tools, request.session_id, request.turn_id)
            )
        try:
            if self._check:
                check_request(request)
            return self._next(request)
        except Exception as error:
            self.violations.append(error)
            raise

    def _next(self, request: ModelRequest) -> Plan:
        script = self._script if self._plans_of is None else self._own_script(request.session_id)
        plan = script.next()
        if plan is None:
            raise ScriptExhausted(
                f"Request {self._calls}, of session {request.session_id!r}, came after the last of "
                f"{len(script.plans)} replies. Add a reply, or give default=.\n"
                + describe_messages(request.messages)
            )
        return plan

    def _own_script(self, session_id: str) -> Script:
        script = self._scripts.get(session_id)
        if script is None:
            assert self._plans_of is not None
            script = Script(self._plans_of(session_id), self._cycle, self._default)
            self._scripts[session_id] = script
        return script

    async def _resolve(self, plan: Plan, request: ModelRequest) -> tuple[Plan, float]:
        """Call reply functions until there is a reply that is none. Returns it and the delays added up."""
        delay = plan.delay
        while plan.function is not None:
            try:
                reply = plan.function(request)
                if isinstance(reply, Awaitable):
                    reply = await reply
                plan = compile_reply(reply)
            except ModelError:
                raise
            except Exception as error:
                self.violations.append(error)
                raise
            delay += plan.delay
        return plan, delay

    def _new_id(self) -> str:
        self._ids += 1
        return f"call_{self._ids}"


def _compile(replies: Sequence[Reply]) -> Sequence[Plan]:
    if isinstance(replies, str):
        raise InvalidConfiguration(f"A script is a list of replies: write [{replies!r}].")
    return [compile_reply(reply) for reply in replies]
