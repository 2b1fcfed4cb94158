"""Exeunt in programs that do not run on trio: `exeunt.embed.asyncio` and `exeunt.embed.threads`.

Both have the names of the trio API. `adapting` makes the handlers that a program gives fit its host, `marks` says
which of them are left as they are, `forks` knows whether a host is in the parent of this process.
"""
