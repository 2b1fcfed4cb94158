"""A bounded number of slots, shared fairly between tenants.

Pure: no trio, no clock. Everything happens in the caller, and the hot path (a slot is free, nobody waits) is one
set and one dictionary operation.

The order of the waiting is self-clocked fair queueing. Virtual time is the tag of the ticket granted last. When a
ticket comes to the head of its tenant, it is tagged with virtual time plus 1/weight, and the smallest tag is granted
next. Three things follow:

* between two requests of one tenant, another of weight w gets at most about w slots more per unit of its own: a
  crowd of any size delays a newcomer by a constant number of slots;
* a tag is never behind virtual time when its tenant falls idle, so nothing need be remembered of idle tenants
  (plain start-time queueing must, or a tenant gains by leaving and coming back);
* virtual time moves with each grant, so a stream of ever new tenants cannot starve one who waits.

Slots that are given while nobody waits are not charged to anyone: nobody was delayed by them.
"""

import heapq
import logging
import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import Protocol

import attrs

from exeunt.supervisor.checks import require_number, require_whole_number

_logger = logging.getLogger(__name__)

_SPARE_ENTRIES = 16
"""Dead heap entries that are tolerated beyond the live ones: below this, rebuilding costs more than it frees."""


class Ticket(Protocol):
    """Who wants a slot. Must be hashable by identity (with attrs: `eq=False`), and `tenant` must not change."""

    @property
    def tenant(self) -> str: ...

    def granted(self) -> None:
        """The ticket, which had to wait, holds a slot now.

        Called synchronously from inside another ticket's `release`; it may use the slots again, also `release`. It
        must not raise: if it does, that is logged and counted, and the slot goes to the next.
        """
        ...


@attrs.frozen
class TenantSlots:
    """One tenant's part of `SlotStatistics`."""

    running: int
    """Tickets that hold a slot."""

    waiting: int
    """Tickets that wait for one."""


@attrs.frozen
class SlotStatistics:
    """A look at `FairSlots`. `requested == granted + withdrawn + waiting`, always."""

    capacity: int
    """Slots in all."""

    running: int
    """Tickets that hold a slot now."""

    waiting: int
    """Tickets that wait for one now."""

    requested: int
    """Requests ever made, those that came back with `requeue_front` included."""

    granted: int
    """Requests that got their slot, at once or later."""

    withdrawn: int
    """Requests that were taken back while they waited."""

    delayed: int
    """Requests that had to wait at first."""

    callback_errors: int
    """Times that a `granted` raised."""

    tenants: Mapping[str, TenantSlots]
    """Tenants that hold or wait for a slot now. Idle ones leave nothing behind."""


@attrs.define(eq=False)
class _Queue:
    """The waiting tickets of one tenant. Exists while there are any."""

    tenant: str
    step: float
    tickets: "OrderedDict[Ticket, None]" = attrs.field(factory=OrderedDict[Ticket, None])
    ready: bool = False
    """Whether the heap has an entry for it. Not so while the tenant runs as much as it may."""


class FairSlots:
    """Slots for running turns, tool calls or anything else that is bounded.

    A ticket is granted at most once per request: `request` says so at once, or calls its `granted` later. Within a
    tenant the order is first come, first served. No slot is free while a ticket waits that may have it.

    Every operation is synchronous and costs O(log tenants that wait) at most, amortised. Not for use from several
    threads.
    """

    __slots__ = (
        "_callback_errors", "_capacity", "_delayed", "_granting", "_heap", "_pushed", "_queues", "_ready",
        "_requested", "_running", "_running_by", "_tenant_capacity", "_virtual_time", "_waiting", "_weights",
        "_withdrawn",
    )  # fmt: skip

    def __init__(
        self, capacity: int, *, tenant_capacity: int | None = None, weights: Mapping[str, float] | None = None
    ) -> None:
        """Make *capacity* slots, of which a tenant may hold *tenant_capacity* at a time (`None`: all).

        A tenant's weight is its part of the slots while several wait; those that *weights* does not name weigh 1.
        Raises `InvalidConfiguration`.
        """
        require_whole_number("capacity", capacity, least=1)
        if tenant_capacity is not None:
            require_whole_number("tenant_capacity", tenant_capacity, least=1)
        for tenant, weight in (weights or {}).items():
            require_number(f"the weight of tenant {tenant!r}", weight, least=0, open_at_least=True)
        self._capacity = capacity
        self._tenant_capacity = sys.maxsize if tenant_capacity is None else tenant_capacity
        self._weights = dict(weights or {})
        self._running: set[Ticket] = set()
        self._running_by: dict[str, int] = {}
        self._queues: dict[str, _Queue] = {}
        self._heap: list[tuple[float, int, _Queue]] = []
        self._ready = 0
        self._pushed = 0
        self._virtual_time = 0.0
        self._granting = False
        self._waiting = 0
        self._requested = 0
        self._delayed = 0
        self._withdrawn = 0
        self._callback_errors = 0

    def request(self, ticket: Ticket) -> bool:
        """Ask for a slot: `True` if *ticket* holds one now, `False` if its `granted` is called later.

        Asking again changes nothing and says the same.
        """
        running = self._running
        if not self._ready and ticket not in running and len(running) < self._capacity:
            # The hot path of `_request`, without a second call.
            tenant = ticket.tenant
            held = self._running_by.get(tenant, 0)
            if held < self._tenant_capacity:
                running.add(ticket)
                self._running_by[tenant] = held + 1
                self._requested += 1
                return True
        return self._request(ticket, front=False)

    def requeue_front(self, ticket: Ticket) -> bool:
        """As `request`, but *ticket* waits in front of all others of its tenant.

        For one that had a slot, gave it back while it could not use it, and goes on now. Other tenants are not
        delayed by it more than by any other ticket of this tenant.
        """
        return self._request(ticket, front=True)

    def release(self, ticket: Ticket) -> bool:
        """Give the slot of *ticket* back and hand it on; `False`, and no effect, if it holds none."""
        try:
            self._running.remove(ticket)
        except KeyError:
            return False
        tenant = ticket.tenant
        held = self._running_by[tenant] - 1
        if held:
            self._running_by[tenant] = held
        else:
            del self._running_by[tenant]
        if self._queues:
            queue = self._queues.get(tenant)
            if queue is not None and not queue.ready:
                self._push(queue)
            self._grant()
        return True

    def hand_over(self, ticket: Ticket, successor: Ticket) -> bool:
        """Let *successor*, of the same tenant, hold the slot of *ticket*; `False`, and no effect, if it holds none."""
        if ticket not in self._running:
            return False
        self._running.remove(ticket)
        self._running.add(successor)
        return True

    def withdraw(self, ticket: Ticket) -> bool:
        """Take the request of *ticket* back; `False`, and no effect, if it does not wait (it may hold a slot)."""
        queue = self._queues.get(ticket.tenant)
        if queue is None or ticket not in queue.tickets:
            return False
        del queue.tickets[ticket]
        self._waiting -= 1
        self._withdrawn += 1
        if not queue.tickets:
            del self._queues[queue.tenant]
            if queue.ready:
                self._ready -= 1
                self._compact()
        return True

    def statistics(self) -> SlotStatistics:
        """Return the counts of this moment. Costs O(tenants that hold or wait)."""
        return SlotStatistics(
            capacity=self._capacity,
            running=len(self._running),
            waiting=self._waiting,
            requested=self._requested,
            granted=self._requested - self._withdrawn - self._waiting,
            withdrawn=self._withdrawn,
            delayed=self._delayed,
            callback_errors=self._callback_errors,
            tenants=self._by_tenant(),
        )

    def _request(self, ticket: Ticket, *, front: bool) -> bool:
        running = self._running
        if ticket in running:
            return True
        tenant = ticket.tenant
        held = self._running_by.get(tenant, 0)
        if not self._ready and len(running) < self._capacity and held < self._tenant_capacity:
            running.add(ticket)
            self._running_by[tenant] = held + 1
            self._requested += 1
            return True
        queue = self._queues.get(tenant)
        if queue is None:
            queue = self._queues[tenant] = _Queue(tenant, 1.0 / self._weights.get(tenant, 1.0))
        elif ticket in queue.tickets:
            return False
        queue.tickets[ticket] = None
        if front:
            queue.tickets.move_to_end(ticket, last=False)
        self._requested += 1
        self._delayed += 1
        self._waiting += 1
        if not queue.ready and held < self._tenant_capacity:
            self._push(queue)
        return False

    def _push(self, queue: _Queue) -> None:
        """Tag the head of *queue*. The number keeps equal tags in order of arrival."""
        queue.ready = True
        self._ready += 1
        self._pushed += 1
        heapq.heappush(self._heap, (self._virtual_time + queue.step, self._pushed, queue))

    def _grant(self) -> None:
        """Hand out free slots. A `granted` that releases at once is served by this loop, not by a recursion."""
        if self._granting:
            return
        self._granting = True
        try:
            while self._ready and len(self._running) < self._capacity:
                tag, _, queue = heapq.heappop(self._heap)
                if not queue.tickets:
                    continue
                ticket, _ = queue.tickets.popitem(last=False)
                self._virtual_time = tag
                self._ready -= 1
                self._waiting -= 1
                queue.ready = False
                self._running.add(ticket)
                held = self._running_by[queue.tenant] = self._running_by.get(queue.tenant, 0) + 1
                if not queue.tickets:
                    del self._queues[queue.tenant]
                elif held < self._tenant_capacity:
                    self._push(queue)
                self._call(ticket)
        finally:
            self._granting = False
        self._compact()

    def _call(self, ticket: Ticket) -> None:
        try:
            ticket.granted()
        except Exception:
            self._callback_errors += 1
            _logger.exception("granted() of %r raised: its slot goes to the next ticket", ticket)
            self.release(ticket)

    def _compact(self) -> None:
        """Drop entries of queues that were withdrawn empty, so that requests taken back cannot grow the heap."""
        if not self._ready:
            # Nobody is being delayed: the past is forgotten, and virtual time keeps its precision for ever.
            self._heap.clear()
            self._virtual_time = 0.0
        elif len(self._heap) > 2 * self._ready + _SPARE_ENTRIES:
            self._heap = [entry for entry in self._heap if entry[2].tickets]
            heapq.heapify(self._heap)

    def _by_tenant(self) -> dict[str, TenantSlots]:
        tenants = dict.fromkeys([*self._running_by, *self._queues])
        return {
            tenant: TenantSlots(
                self._running_by.get(tenant, 0),
                len(self._queues[tenant].tickets) if tenant in self._queues else 0,
            )
            for tenant in tenants
        }
