"""What can be counted: numbers made of events, read by Prometheus.

Nothing here waits, locks, or needs an event loop of its own, and an event costs a session well under a
microsecond. Reading order: `labels` (the values that there are), `instruments` (ints and lists), `recorder`
(from events to numbers), `sources` (what is read from the host), `collector` (from numbers to metric
families), `host_metrics` (all of a host's), `http_server` (where Prometheus finds them). `dashboards` holds a
Grafana dashboard and alert rules.
"""

from exeunt.metrics.host_metrics import Metrics
from exeunt.metrics.http_server import Exposition, open_exposition, serve_metrics
from exeunt.metrics.sources import HostStatisticsLike

__all__ = ["Exposition", "HostStatisticsLike", "Metrics", "open_exposition", "serve_metrics"]
