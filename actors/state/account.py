"""What a session may spend, and has spent. Pure."""

import msgspec

from exeunt.actors.prices import NANO


class Spent(msgspec.Struct, frozen=True, gc=False):
    """What the calls of one model have taken."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    nano: int = 0
    """Billionths of a credit."""


class Account(msgspec.Struct, frozen=True, gc=False):
    """The credits of a session since it began, in billionths."""

    spent: int = 0
    limit: int | None = None
    """`None`: it may spend what it likes."""
    models: dict[str, Spent] = {}
    """By the name of the model. Never changed: a new one takes its place."""

    @property
    def exhausted(self) -> bool:
        """Whether no further call may be made."""
        return self.limit is not None and self.spent >= self.limit

    @property
    def left(self) -> int | None:
        """What may still be spent; `None` without a limit, 0 where more was spent than was allowed."""
        return None if self.limit is None else max(0, self.limit - self.spent)

    @property
    def spent_credits(self) -> float:
        """What was spent, in credits."""
        return self.spent / NANO

    @property
    def limit_credits(self) -> float | None:
        """What may be spent, in credits."""
        return None if self.limit is None else self.limit / NANO

    def charged(self, model: str, call: Spent) -> "Account":
        """Return the account after one more call."""
        before = self.models.get(model, _NOTHING)
        sums = Spent(
            before.calls + call.calls,
            before.input_tokens + call.input_tokens,
            before.output_tokens + call.output_tokens,
            before.cache_read_tokens + call.cache_read_tokens,
            before.cache_write_tokens + call.cache_write_tokens,
            before.nano + call.nano,
        )
        return Account(self.spent + call.nano, self.limit, {**self.models, model: sums})

    def limited(self, limit: int | None) -> "Account":
        """Return the account with another limit."""
        return Account(self.spent, limit, self.models)


_NOTHING = Spent()

NO_ACCOUNT = Account()
"""Of a session that has neither a limit nor prices."""
