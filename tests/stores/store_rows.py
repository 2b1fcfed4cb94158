"""Rows for tests of stores."""

from exeunt.supervisor.journal import Row


def row(session_id: str, first_seq: int, last_seq: int = 0, *, data: bytes = b"slice") -> Row:
    start = 1.0 if first_seq == 1 else None
    return Row(session_id, first_seq, last_seq or first_seq, 2.0, data, "tenant" if start else None, start)
