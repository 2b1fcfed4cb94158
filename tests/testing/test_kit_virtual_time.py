"""Hours in milliseconds, and races that can be repeated."""

import importlib
import random

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from exeunt.actors.errors import InvalidConfiguration
from exeunt.testing import run_virtual, schedule_seed


async def order_of_tasks(count: int) -> list[int]:
    order: list[int] = []

    async def note(number: int) -> None:
        await trio.lowlevel.checkpoint()
        order.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(note, number)
    return order


def test_an_hour_passes_at_once_and_the_result_comes_back() -> None:
    async def wait(seconds: float) -> float:
        await trio.sleep(seconds)
        return trio.current_time()

    assert run_virtual(wait, 3600) == 3600


def test_a_run_longer_than_its_bound_ends_in_an_error() -> None:
    with pytest.raises(trio.TooSlowError):
        run_virtual(trio.sleep, 11, timeout=10)


def test_tasks_that_wait_for_each_other_are_found() -> None:
    with pytest.raises(trio.TooSlowError):
        run_virtual(trio.sleep_forever)


def test_errors_pass() -> None:
    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_virtual(fail)


@given(st.integers())
def test_the_same_seed_gives_the_same_order_of_tasks(seed: int) -> None:
    assert run_virtual(order_of_tasks, 10, seed=seed) == run_virtual(order_of_tasks, 10, seed=seed)


def test_different_seeds_give_different_orders_of_tasks() -> None:
    orders = {tuple(run_virtual(order_of_tasks, 10, seed=seed)) for seed in range(20)}

    assert len(orders) == 20


async def test_a_seed_can_be_set_inside_a_run() -> None:
    with schedule_seed(5):
        first = await order_of_tasks(10)
    with schedule_seed(5):
        second = await order_of_tasks(10)

    assert first == second


def test_the_order_of_before_comes_back_after_a_seeded_run(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = importlib.import_module("trio._core._run")
    numbers = random.Random(1)
    expected = random.Random(1).random()
    monkeypatch.setattr(scheduler, "_r", numbers)
    monkeypatch.setattr(scheduler, "_ALLOW_DETERMINISTIC_SCHEDULING", False)

    run_virtual(order_of_tasks, 3, seed=9)

    assert numbers.random() == expected
    assert vars(scheduler)["_ALLOW_DETERMINISTIC_SCHEDULING"] is False


def test_a_trio_that_cannot_be_seeded_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("trio._core._run._r")

    with pytest.raises(InvalidConfiguration, match="does not let its schedule be seeded"), schedule_seed(1):
        pass
