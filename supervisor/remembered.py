"""The options of sessions that were disconnected, for whoever resumes them without any."""

from collections import OrderedDict

from exeunt.actors.options import SessionOptions


class RememberedOptions:
    """A bounded memory of options. Beyond the bound those are forgotten that were remembered first."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Not a dict: the first entry of one is found behind all that were deleted before it.
        self._options: OrderedDict[str, SessionOptions] = OrderedDict()
        self.forgotten = 0
        """Sessions whose options had to make room for others."""

    def __len__(self) -> int:
        return len(self._options)

    def remember(self, session_id: str, options: SessionOptions) -> None:
        """Keep *options*, as those that were remembered last."""
        self._options.pop(session_id, None)
        self._options[session_id] = options
        while len(self._options) > self._most:
            self._options.popitem(last=False)
            self.forgotten += 1

    def get(self, session_id: str) -> SessionOptions | None:
        """Return the options of a session, if they are known."""
        return self._options.get(session_id)

    def forget(self, session_id: str) -> None:
        """The session has its options itself again, or is gone."""
        self._options.pop(session_id, None)
