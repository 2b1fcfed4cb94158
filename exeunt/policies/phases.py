"""Named phases of one session: each a context of its own, with its own tools and developer message.

Which phase a session is in stands in its log: the clear that began it says so in its `trigger`, `phase:NAME`. A clear
of another kind in the middle of a phase changes nothing about that, and who goes back by `truncate` is in the phase of
then. The options of a phase are used from its seed, or the next message, on: the clear is a transaction, and one that
is rolled back leaves the phase as it was.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Protocol, cast

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.events import ContextCleared, Event, SessionTruncated
from exeunt.actors.hooks import HookInvocation
from exeunt.actors.marks import runs_on_trio
from exeunt.actors.outcomes import ToolResult
from exeunt.actors.session import Session
from exeunt.actors.tools import Tool, ToolInvocation, tool
from exeunt.host import SessionHost
from exeunt.policies.options import tools_of, with_hooks
from exeunt.policies.seeds import LONGEST_SEED, SeedFrame, SeedTooLong

TRIGGER = "phase:"

LONGEST_NAME = 40
"""Characters of a phase's name: it stands in an event and in a template."""

MOST_SESSIONS = 10_000
"""Sessions whose phase is remembered; that of another is read from its log again."""

READ_AT_ONCE = 1_000
"""Events of a stored log that are read in one go."""


class EmbeddedHost(Protocol):
    """A host of `exeunt.embed`."""

    @property
    def trio_host(self) -> SessionHost: ...


AnyHost = SessionHost | EmbeddedHost


@attrs.frozen(kw_only=True)
class Phase:
    """One phase."""

    name: str
    developer_message: str
    """What the model is told in this phase, behind the session's own developer messages."""
    tools: Sequence[Tool[..., Any]] = ()
    """Beside those of every phase."""
    next: Sequence[str] | None = None
    """Phases that may follow; `None` is the one behind it in the list, `()` none: the work ends in this phase."""


class PhasePolicy:
    """Takes sessions through phases. One policy serves any number of sessions of one host."""

    def __init__(
        self,
        phases: Sequence[Phase],
        *,
        tool_name: str = "next_phase",
        template: str = "This is the phase {phase}. The phase before, {before}, has handed on:\n\n{prompt}",
        longest_seed: int = LONGEST_SEED,
    ) -> None:
        """*template* makes the seed, with the fields `{prompt}`, `{phase}` and `{before}`.

        Raises `InvalidConfiguration` for phases of one name, or that lead nowhere.
        """
        self._phases = _checked(phases)
        self._first = phases[0].name
        self._tool_name = tool_name
        self._template = template
        self._longest_seed = longest_seed
        SeedFrame(template, longest_seed, lambda _: {})
        try:
            template.format_map({"prompt": "", "phase": "", "before": ""})
        except (KeyError, IndexError, AttributeError) as error:
            raise InvalidConfiguration(
                f"the template {template!r:.80} has more fields than {{prompt}}, {{phase}} and {{before}}"
            ) from error
        self._next_tools = {name: self._tool(phase) for name, phase in self._phases.items() if phase.next}
        self._places: OrderedDict[str, _Place] = OrderedDict()

    async def create_session(
        self, host: SessionHost, *, session_id: str | None = None, **options: Any
    ) -> Session:
        """Make a session in the first phase. *options* are those of `host.create_session`, for every phase.

        For hosts on trio; an embedded one makes it itself: `host.create_session(**policy.first_options(host, ...))`.
        Raises what that raises.
        """
        return await _on_trio(host, "first_options").create_session(
            session_id=session_id, **self.first_options(host, **options)
        )

    async def resume_session(
        self, host: SessionHost, session_id: str, *, continue_pending_work: bool = False, **options: Any
    ) -> Session:
        """Take up a stored session in the phase that it was in. *options* are those of `create_session`.

        Reads its log. For hosts on trio; see `options_for`. Raises what `host.resume_session` raises.
        """
        return await _on_trio(host, "options_for").resume_session(
            session_id,
            continue_pending_work=continue_pending_work,
            **await self.options_for(host, session_id, **options),
        )

    def first_options(self, host: AnyHost, **options: Any) -> dict[str, Any]:
        """Return the keywords with which a session of *host*, of whatever kind, begins its first phase."""
        return self._options_in(_trio_host(host), options, self._first)

    async def options_for(self, host: AnyHost, session_id: str, **options: Any) -> dict[str, Any]:
        """Return the keywords with which a stored session runs in the phase that it was in.

        Reads its log, on trio: in an embedded host by `host.run_trio`. For a `session_options` of `open_host`:
        `build_options(**await policy.options_for(...))`. Raises `JournalError`, `SessionNotFound`.
        """
        on_trio = _trio_host(host)
        place = _Place(self._first)
        while events := await on_trio.journal.read(session_id, place.next_seq, READ_AT_ONCE):
            self._follow(place, events)
        self._remember(session_id, place)
        return self._options_in(on_trio, options, place.phase)

    async def phase_of(self, session: Session) -> str:
        """Return the name of the phase that the session is in. Raises `JournalError`."""
        place = self._places.get(session.session_id) or _Place(self._first)
        self._follow(place, await session.get_events(place.next_seq))
        self._remember(session.session_id, place)
        return place.phase

    def _follow(self, place: "_Place", events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, ContextCleared) and event.trigger.startswith(TRIGGER):
                name = event.trigger.removeprefix(TRIGGER)
                if name in self._phases:
                    place.begins(name, event.seq)
            elif isinstance(event, SessionTruncated):
                place.goes_back(event.to_seq, event.seq)
            place.next_seq = event.seq + 1

    def _remember(self, session_id: str, place: "_Place") -> None:
        self._places[session_id] = place
        self._places.move_to_end(session_id)
        if len(self._places) > MOST_SESSIONS:
            self._places.popitem(last=False)

    def _options_in(self, host: SessionHost, options: Mapping[str, Any], name: str) -> dict[str, Any]:
        phase = self._phases[name]
        tools = (*tools_of(options), *phase.tools)
        if phase.next:
            tools = (*tools, self._next_tools[name])
        given = options.get("developer_messages") or ()
        before = (given,) if isinstance(given, str) else tuple(cast("Sequence[str]", given))
        merged = {**options, "tools": tools, "developer_messages": (*before, phase.developer_message)}

        @runs_on_trio
        async def enter(hook_input: Any, invocation: HookInvocation) -> None:
            """Before the seed of a phase is in the context, let the session be what it is in that phase."""
            session = invocation.session
            now = await self.phase_of(session)
            if now != name:
                await host.resume_session(session.session_id, **self._options_in(host, options, now))

        return with_hooks(merged, {"on_user_prompt_submitted": enter})

    def _tool(self, phase: Phase) -> Tool[..., Any]:
        choices = tuple(phase.next or ())

        @runs_on_trio
        async def next_phase(
            decisions: Annotated[
                str, "All that the next phase is told: decisions, findings, what is to be done."
            ],
            phase_name: Annotated[str | None, f"Which phase follows: {', '.join(choices)}."] = None,
            *,
            invocation: ToolInvocation,
        ) -> ToolResult:
            chosen = phase_name or choices[0]
            if chosen not in choices:
                return ToolResult(
                    f"{chosen} does not follow {phase.name}; {', '.join(choices)} does.", "failure"
                )
            if not decisions.strip():
                return ToolResult("The decisions are blank: the next phase would know nothing.", "failure")
            frame = SeedFrame(
                self._template, self._longest_seed, lambda _: {"phase": chosen, "before": phase.name}
            )
            try:
                seed = await frame.seed(decisions, invocation)
            except SeedTooLong as error:
                return ToolResult(str(error), "failure", str(error))
            await invocation.session.history.clear_context(seed, trigger=f"{TRIGGER}{chosen}")
            return ToolResult(f"The phase {phase.name} is over; {chosen} begins.")

        return tool(
            self._tool_name,
            description=f"End the phase {phase.name} and begin the next one, which knows nothing but your decisions.",
            is_terminal=True,
            skip_permission=True,
            defer="never",
        )(next_phase)


@attrs.define
class _Place:
    """Where a session is, and was, as far as its log was read."""

    first: str
    next_seq: int = 1
    changes: list[tuple[int, str]] = attrs.field(factory=list[tuple[int, str]])
    """Numbers of the events at which the phase became another one, and which."""

    @property
    def phase(self) -> str:
        """The phase after the last event that was read."""
        return self.changes[-1][1] if self.changes else self.first

    def begins(self, phase: str, seq: int) -> None:
        """Another phase begins with event *seq*."""
        self.changes.append((seq, phase))

    def goes_back(self, to_seq: int, seq: int) -> None:
        """With event *seq* the conversation is again what it was after event *to_seq*."""
        then = [phase for changed, phase in self.changes if changed <= to_seq]
        self.begins(then[-1] if then else self.first, seq)


def _trio_host(host: AnyHost) -> SessionHost:
    return host if isinstance(host, SessionHost) else host.trio_host


def _on_trio(host: Any, instead: str) -> SessionHost:
    if not isinstance(host, SessionHost):
        raise InvalidConfiguration(
            f"this host is embedded, and makes and takes up its sessions itself: give it what {instead}() returns"
        )
    return host


def _checked(phases: Sequence[Phase]) -> dict[str, Phase]:
    if not phases:
        raise InvalidConfiguration("a session goes through at least one phase")
    by_name: dict[str, Phase] = {}
    for position, phase in enumerate(phases):
        name: Any = phase.name
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
            raise InvalidConfiguration(
                f"the name of a phase is a text of 1 to {LONGEST_NAME} printable characters, not {name!r:.80}"
            )
        if name in by_name:
            raise InvalidConfiguration(f"two phases have the name {name!r}")
        following = (phases[position + 1].name,) if position + 1 < len(phases) else ()
        by_name[name] = phase if phase.next is not None else attrs.evolve(phase, next=following)
    for phase in by_name.values():
        unknown = sorted(set(phase.next or ()) - set(by_name))
        if unknown:
            raise InvalidConfiguration(
                f"the phase {phase.name!r} is followed by {unknown}, which there are not"
            )
    return by_name
