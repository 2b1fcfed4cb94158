"""A small HTTP/1.1 client for model APIs: h11 on trio streams.

Reading order: `urls` (what to reach, and through what), `connect` (TCP, proxy, TLS), `connection` (one
keep-alive connection), `pool` (which connection serves a request), `client` (one request), `decoding`,
`retry_after` and `sse` (what to make of the answer).

Why not a general client: a call costs about a fifth of the CPU. What is left out (redirects, cookies, HTTP/2,
uploads) no model API needs.
"""

from exeunt.models.http.client import HttpClient, Response
from exeunt.models.http.pool import PoolLimits, PoolStatistics
from exeunt.models.http.retry_after import RetryAdvice, retry_advice
from exeunt.models.http.sse import SSEEvent, SSEReader
from exeunt.models.http.timeouts import Timeouts

__all__ = [
    "HttpClient",
    "PoolLimits",
    "PoolStatistics",
    "Response",
    "RetryAdvice",
    "SSEEvent",
    "SSEReader",
    "Timeouts",
    "retry_advice",
]
