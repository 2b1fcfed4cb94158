"""A tool: a function that a model can call."""

from collections.abc import Callable
from typing import Any, Generic, Literal, ParamSpec, TypeVar, cast, final

import attrs

from exeunt.actors.models import ToolDefinition
from exeunt.actors.tools.arguments import Binder, BoundArguments
from exeunt.actors.tools.invocation import CallInvocation
from exeunt.actors.tools.signature import Signature

P = ParamSpec("P")
R = TypeVar("R")
Defer = Literal["auto", "never"]


def _takes_invocation(tool: "Tool[..., Any]") -> bool:
    signature: Signature = tool._signature  # pyright: ignore[reportPrivateUsage]
    return signature.invocation_at is not None or signature.invocation_as is not None


@final
@attrs.frozen(eq=False)
class Tool(Generic[P, R]):
    """A function that a model can call, with everything that is worked out once: schema, decoder, call plan.

    Made by `tool`. Immutable, hashable by identity, and shared by any number of sessions. Calling it calls
    the function as it was written.
    """

    name: str
    definition: ToolDefinition
    """Name, description and JSON Schema, as they are sent to models."""

    handler: Callable[P, R]
    is_async: bool
    """Whether the handler is awaited; a synchronous one is run in a worker thread."""

    is_terminal: bool
    """Whether a success ends the turn."""

    defer: Defer | None
    """Whether the tool may be offered only when it is searched for. Kept and reported to who asks."""

    skip_permission: bool
    """Whether the handler runs without asking for permission."""

    timeout: float
    """Seconds that the handler may take."""

    approval_timeout: float | None
    """Seconds that its approval may take; `None` for the session's `Waits.approval`."""

    sequential: bool
    """Whether the call waits for the calls before it in its batch, and those after it wait for it."""

    idempotent: bool
    """Whether a call that a crash interrupted may be run again, with the same `idempotency_key`."""

    expose_errors: bool
    """Whether the model sees the text of an exception of the handler. The event log always has it."""

    _binder: Binder = attrs.field(alias="binder", repr=False)
    _signature: Signature = attrs.field(alias="signature", repr=False)
    takes_invocation: bool = attrs.field(
        init=False, repr=False, default=attrs.Factory(_takes_invocation, takes_self=True)
    )
    """Whether the handler asks for the invocation."""

    @property
    def description(self) -> str:
        """What the tool does, for the model."""
        return self.definition.description

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself: no validation, no session."""
        return self.handler(*args, **kwargs)

    def adapted(self, handler: Callable[..., Any]) -> "Tool[..., Any]":
        """Return this tool with *handler*, which takes what the tool's own takes: for a host that runs it elsewhere."""
        return attrs.evolve(cast("Tool[..., Any]", self), handler=handler)

    def bind(self, arguments_json: str) -> BoundArguments:
        """Parse and validate the arguments as the model wrote them.

        A blank text is an object without properties. Strict: `"12"` is no number. Raises `InvalidArguments`,
        whose text is for the model, and nothing else.
        """
        return self._binder.bind(arguments_json)

    def invoke(self, bound: BoundArguments, invocation: CallInvocation | None) -> Any:
        """Call the handler with what `bind` of this tool returned, and with *invocation* if it `takes_invocation`.

        Returns what the handler returns, of an async handler the coroutine. Raises what it raises.
        """
        return self._signature.call(self.handler, bound, invocation)
