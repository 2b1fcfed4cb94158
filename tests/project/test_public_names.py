"""The public names: one place, one name for each thing, and a word about each."""

import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Iterator
from types import ModuleType

import pytest

import exeunt
from exeunt.actors.errors import ExeuntError

ROOMS = ("exeunt.actors", "exeunt.supervisor", "exeunt.metrics")


def modules_of(package_name: str) -> Iterator[ModuleType]:
    package = importlib.import_module(package_name)
    yield package
    for module in pkgutil.walk_packages(package.__path__, package_name + "."):
        yield importlib.import_module(module.name)


def public_names() -> list[str]:
    return list(exeunt.__all__)


def test_there_are_public_names() -> None:
    assert public_names()


def test_each_public_name_can_be_imported() -> None:
    assert [name for name in public_names() if not hasattr(exeunt, name)] == []


def test_each_public_name_is_listed_once() -> None:
    assert [name for name, times in Counter(public_names()).items() if times > 1] == []


def test_each_public_class_and_function_has_one_name() -> None:
    things = {name: getattr(exeunt, name) for name in public_names()}
    names = Counter(
        id(thing) for thing in things.values() if inspect.isclass(thing) or inspect.isroutine(thing)
    )
    assert [name for name, thing in things.items() if names[id(thing)] > 1] == []


def test_each_public_class_and_function_says_what_it_is_for() -> None:
    # `__dict__`, not `inspect.getdoc`: a sentence inherited from a base says nothing about the class.
    silent = [
        name
        for name in public_names()
        if (inspect.isclass(thing := getattr(exeunt, name)) and not vars(thing).get("__doc__"))
        or (inspect.isroutine(thing) and not thing.__doc__)
    ]
    assert silent == []


def test_each_public_method_says_what_it_does() -> None:
    silent = [
        f"{name}.{attribute}"
        for name in public_names()
        if inspect.isclass(thing := getattr(exeunt, name)) and thing.__module__.startswith("exeunt.")
        for attribute, member in vars(thing).items()
        if not attribute.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, (classmethod, staticmethod, property)))
        and not inspect.getdoc(getattr(thing, attribute))
    ]
    assert silent == []


@pytest.mark.parametrize("room", ROOMS)
def test_each_error_of_a_room_is_public(room: str) -> None:
    hidden = [
        thing.__qualname__
        for module in modules_of(room)
        for thing in vars(module).values()
        if inspect.isclass(thing)
        and issubclass(thing, ExeuntError)
        and thing.__module__ == module.__name__
        and getattr(exeunt, thing.__name__, None) is not thing
    ]
    assert hidden == []


@pytest.mark.parametrize("room", ROOMS)
def test_each_error_of_a_room_says_what_it_means(room: str) -> None:
    silent = [
        thing.__qualname__
        for module in modules_of(room)
        for thing in vars(module).values()
        if inspect.isclass(thing) and issubclass(thing, ExeuntError) and not vars(thing).get("__doc__")
    ]
    assert silent == []
