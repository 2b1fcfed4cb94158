"""The tools of one session."""

from typing import Any

import pytest

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.tools import ToolSet, tool


@tool
def read_file(path: str) -> str:
    return path


@tool
def get_weather(city: str) -> str:
    return city


TOOLS = ToolSet([read_file, get_weather])


def test_a_set_keeps_the_order_and_the_definitions() -> None:
    assert TOOLS.names == ("read_file", "get_weather")
    assert TOOLS.definitions == (read_file.definition, get_weather.definition)
    assert list(TOOLS) == [read_file, get_weather]
    assert len(TOOLS) == 2
    assert repr(TOOLS) == "ToolSet(read_file, get_weather)"


@pytest.mark.parametrize(
    "name", ["read_file", " read_file", "read_file\n", "functions.read_file", " functions.read_file "]
)
def test_white_space_and_prefix_around_a_name_are_tolerated(name: str) -> None:
    assert TOOLS.find(name) is read_file


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Read_file",
        "readfile",
        "functions.",
        "functions.nosuch",
        "functions.functions.read_file",
        "a.read_file",
    ],
)
def test_nothing_is_matched_more_loosely(name: str) -> None:
    assert TOOLS.find(name) is None


def test_two_tools_of_one_name_are_refused() -> None:
    def another() -> None: ...

    with pytest.raises(InvalidConfiguration, match="two tools have the name 'read_file'"):
        ToolSet([read_file, get_weather, tool("read_file")(another)])


@pytest.mark.parametrize("wrong", [print, "read_file", None])
def test_what_is_no_tool_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="@tool"):
        ToolSet([wrong])


def test_an_unknown_tool_is_answered_with_those_that_there_are() -> None:
    text = "Tool 'nosuch' does not exist. Available tools that can be called are read_file, get_weather."

    assert TOOLS.unknown_tool_text("nosuch") == text
    assert ToolSet().unknown_tool_text("nosuch") == "Tool 'nosuch' does not exist."


def test_a_made_up_name_cannot_blow_up_the_answer() -> None:
    text = ToolSet().unknown_tool_text("x\ud83d" * 10_000)

    assert len(text.encode()) < 1000
