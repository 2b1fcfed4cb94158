"""Which messages the host takes in, and which turns run: bounds and a fair queue, no trio and no clock."""

from collections.abc import Mapping

import attrs

from exeunt.actors.errors import Overloaded
from exeunt.supervisor.checks import require_whole_number
from exeunt.supervisor.slots import FairSlots, SlotStatistics


@attrs.frozen
class AdmissionStatistics(SlotStatistics):
    """A look at `Admission`: its running and waiting turns, and what it decided about messages."""

    accepted: int
    """Messages that `offer` let in."""

    refused: int
    """Messages that `offer` refused with `Overloaded`: `refused_host + refused_tenant`."""

    refused_host: int
    """Of these: the host had no room."""

    refused_tenant: int
    """Of these: the host had room, but the tenant had used up its share."""


class Admission(FairSlots):
    """Slots of running turns, with a bound on those that wait.

    The bound is asked in one place, `offer`, when a message is put. A turn that follows from something that was
    accepted (a seed after a clear, a queued message, a turn that parked or is resumed) goes straight to `request`:
    it may wait, but it is never refused, so `waiting` may pass its bound by such turns.
    """

    __slots__ = ("_accepted", "_bound", "_refused_host", "_refused_tenant", "_share")

    def __init__(
        self,
        *,
        running: int,
        waiting: int,
        tenant_share: int | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        """Let *running* turns run and *waiting* more wait; a tenant has at most *tenant_share* of both together.

        `None` as share lets one tenant fill the host. Weights are those of `FairSlots`.
        Raises `InvalidConfiguration`.
        """
        require_whole_number("waiting", waiting, least=0)
        if tenant_share is not None:
            require_whole_number("tenant_share", tenant_share, least=1)
        super().__init__(running, weights=weights)
        self._bound = running + waiting
        self._share = self._bound if tenant_share is None else tenant_share
        self._accepted = 0
        self._refused_host = 0
        self._refused_tenant = 0

    def offer(self, tenant: str, *, session_id: str | None = None) -> None:
        """Let a message of *tenant* in, or raise `Overloaded`. Reserves nothing: a look at the counts of now."""
        held = self._running_by.get(tenant, 0)
        queue = self._queues.get(tenant)
        if queue is not None:
            held += len(queue.tickets)
        in_all = len(self._running) + self._waiting
        if in_all < self._bound and held < self._share:
            self._accepted += 1
        elif in_all >= self._bound:
            self._refused_host += 1
            raise Overloaded(
                f"The host has {in_all} turns running or waiting and takes {self._bound}. Nothing was queued; "
                f"send again when turns have ended.",
                session_id=session_id,
            )
        else:
            self._refused_tenant += 1
            raise Overloaded(
                f"Tenant {tenant!r} has {held} turns running or waiting and its share is {self._share}. Nothing "
                f"was queued; send again when one of its turns has ended.",
                session_id=session_id,
            )

    def statistics(self) -> AdmissionStatistics:
        """Return the counts of this moment. Costs O(tenants that hold or wait)."""
        slots = super().statistics()
        return AdmissionStatistics(
            **attrs.asdict(slots, recurse=False),
            accepted=self._accepted,
            refused=self._refused_host + self._refused_tenant,
            refused_host=self._refused_host,
            refused_tenant=self._refused_tenant,
        )
