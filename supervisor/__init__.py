"""Who keeps sessions alive: supervision and admission.

Reading order of the room:

* `checks`: validators of options
* `restarts`: how often and how late a restart is allowed (pure)
* `strategies`: whom a failure restarts (pure)
* `children`: what a child is, does and reports
* `child_run`: one run of a child's task, its start and its end
* `reports`: the observer and the counts
* `virtual`: children without a task
* `family`: the children of one run of a supervisor, and the rules that tie them
* `tree`: `Supervisor` and `open_supervisor`
* `slots`: bounded slots, shared fairly between tenants (pure)
* `admission`: which messages are taken in and which turns run (pure)
* `journal`: where the logs of sessions live; `clock`: the host's clocks; `options`: its bounds
* `supervision`: restarts of session actors
* `passivation`: when a session leaves memory; `waking`: what is kept of it, and how it comes back
* `held`: the sessions in memory; `statistics`: a look at a host; `host`: the host itself, and what is stored
"""

from exeunt.supervisor.admission import Admission, AdmissionStatistics
from exeunt.supervisor.children import (
    ChildEvent,
    ChildEventKind,
    ChildSpec,
    ChildState,
    Observer,
    Restart,
    SupervisorStatistics,
)
from exeunt.supervisor.family import Child
from exeunt.supervisor.restarts import Backoff, RestartIntensity, RestartLog, RestartPolicy
from exeunt.supervisor.slots import FairSlots, SlotStatistics, TenantSlots, Ticket
from exeunt.supervisor.strategies import Strategy
from exeunt.supervisor.tree import Supervisor, open_supervisor
from exeunt.supervisor.virtual import VirtualChild

__all__ = [
    "Admission",
    "AdmissionStatistics",
    "Backoff",
    "Child",
    "ChildEvent",
    "ChildEventKind",
    "ChildSpec",
    "ChildState",
    "FairSlots",
    "Observer",
    "Restart",
    "RestartIntensity",
    "RestartLog",
    "RestartPolicy",
    "SlotStatistics",
    "Strategy",
    "Supervisor",
    "SupervisorStatistics",
    "TenantSlots",
    "Ticket",
    "VirtualChild",
    "open_supervisor",
]
