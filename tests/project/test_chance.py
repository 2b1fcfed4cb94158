"""A test that fails fails again: its chance is its own name's."""

import trio

from tests.chance import seed_chance


def order_of_ten_tasks(seed: str) -> tuple[int, ...]:
    order: list[int] = []

    async def note(number: int) -> None:
        await trio.lowlevel.checkpoint()
        order.append(number)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(note, number)

    seed_chance(seed)
    trio.run(main)
    return tuple(order)


def test_one_seed_gives_one_order_of_tasks() -> None:
    assert order_of_ten_tasks("a") == order_of_ten_tasks("a")


def test_seeds_give_different_orders_of_tasks() -> None:
    assert len({order_of_ten_tasks(str(seed)) for seed in range(5)}) > 1
