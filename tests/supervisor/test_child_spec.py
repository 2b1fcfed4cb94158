"""What a specification reads off the task of a child."""

from exeunt.supervisor import ChildSpec
from tests.late_annotations import defined


def test_a_task_is_asked_what_it_takes_also_where_only_a_type_checker_knows_its_types() -> None:
    made = defined(
        "async def plain(pool: Missing) -> Missing: ...\n"
        "async def asks(*, task_status: Missing, stopping: Missing) -> None: ...\n"
    )

    plain, asks = ChildSpec("plain", made["plain"]), ChildSpec("asks", made["asks"])

    assert (plain.reports_started, plain.takes_stopping) == (False, False)
    assert (asks.reports_started, asks.takes_stopping) == (True, True)
