"""When the work on a message is over."""

import trio

from exeunt.actors.events import (
    Event,
    MessageDropped,
    SessionFailed,
    SessionLost,
    SessionShutdown,
    TurnEnd,
    UserMessage,
)


class Endings:
    """Watches a session from before a message is sent until what it began is over, through clears too."""

    def __init__(self) -> None:
        self._turns: dict[str, str] = {}
        """Turns that took messages in, by message."""
        self._over: set[str] = set()
        """Turns that have ended, and messages that were dropped."""
        self._successors: dict[str, str] = {}
        self._cleared = ""
        self._gone = False
        self._news = trio.Event()

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        match event:
            case UserMessage(message_id=str() as message_id):
                self._turns[message_id] = event.turn_id
            case UserMessage(delivery="seed"):
                self._successors[self._cleared] = event.turn_id
            case TurnEnd(cleared=True):
                self._cleared = event.turn_id
            case TurnEnd():
                self._over.add(event.turn_id)
            case MessageDropped():
                self._over.add(event.message_id)
            case SessionShutdown() | SessionFailed() | SessionLost():
                self._gone = True
            case _:
                return
        self._news.set()

    async def of(self, message_id: str) -> None:
        """Wait until the turn that takes the message in has ended, or the message was dropped."""
        while not self._gone and not self._is_over(message_id):
            self._news = trio.Event()
            await self._news.wait()

    def _is_over(self, message_id: str) -> bool:
        turn = self._turns.get(message_id)
        while turn in self._successors:
            turn = self._successors[turn]
        return message_id in self._over or turn in self._over
