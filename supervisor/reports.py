"""How a supervisor says what happens to its children: to its observer, and in counts."""

import logging
from collections import Counter

from exeunt.supervisor.children import ChildEvent, ChildEventKind, Observer

_logger = logging.getLogger(__name__)


class Reporter:
    """Tells the observer and counts. A fault of the observer is logged, counted, and goes no further."""

    __slots__ = ("_observer", "counts", "name", "observer_errors")

    def __init__(self, name: str, observer: Observer | None) -> None:
        self.name = name
        """Of the supervisor."""
        self._observer = observer
        self.counts: Counter[ChildEventKind] = Counter()
        self.observer_errors = 0

    def tell(
        self, kind: ChildEventKind, child: str, error: Exception | None = None, delay: float | None = None
    ) -> ChildEvent:
        """Count and report; return the event."""
        self.counts[kind] += 1
        event = ChildEvent(kind, self.name, child, error, delay)
        if self._observer is not None:
            try:
                self._observer(event)
            except Exception:
                self.observer_errors += 1
                _logger.exception("the observer of supervisor %r raised at %s of %r", self.name, kind, child)
        return event
