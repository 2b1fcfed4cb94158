"""Ids of calls as strict servers take them."""

import re

from exeunt.models.door.calls import legal_id


def test_ids_that_differ_in_what_no_server_takes_stay_different() -> None:
    given = ["a.b", "a:b", "\u00e9", "\u00e8", "\ud83d", "\ude00", "\ufffd", ""]
    legal = [legal_id(one) for one in given]
    assert len(set(legal)) == len(given)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", one) for one in legal)


def test_an_id_that_servers_take_stays_as_it_is() -> None:
    assert legal_id("toolu_01-A") == "toolu_01-A"
