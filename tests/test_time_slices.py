"""Long work is done a slice at a time, and those who do it take turns."""

import asyncio

from gateway.time_slices import next_slice, one_at_a_time, sliced


async def test_one_turn_is_given_in_each_step_of_the_loop() -> None:
    loop, steps, taken = asyncio.get_running_loop(), 0, list[tuple[str, int]]()

    def step() -> None:
        nonlocal steps
        steps += 1
        if len(taken) < 9:
            loop.call_soon(step)

    async def work(name: str) -> None:
        for _ in range(3):
            await next_slice()
            taken.append((name, steps))

    loop.call_soon(step)
    await asyncio.gather(*(work(name) for name in "abc"))
    assert [name for name, _ in taken] == list("abcabcabc"), "who has waited longest is next"
    assert len({at for _, at in taken}) == 9, "no two in one step"


async def test_others_are_served_between_two_slices() -> None:
    seen = list[str]()

    async def other() -> None:
        for _ in range(3):
            seen.append("other")
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    async for some in sliced(range(6), 2):
        seen.append(f"{list(some)}")
    await beside
    assert seen.index("other") < seen.index("[2, 3]") and seen.count("other") == 3
    assert [word for word in seen if word != "other"] == ["[0, 1]", "[2, 3]", "[4, 5]"]


async def test_what_fits_into_one_slice_waits_for_nobody() -> None:
    seen = list[str]()
    asyncio.get_running_loop().call_soon(seen.append, "step")
    async for _ in sliced(range(5), 5):
        seen.append("slice")
    assert seen == ["slice"]


async def test_who_gives_up_waiting_takes_nobody_s_turn() -> None:
    first, second = asyncio.create_task(next_slice()), asyncio.create_task(next_slice())
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert first.cancelled() or first.done()
    await next_slice()


async def test_work_of_one_name_is_done_one_at_a_time() -> None:
    at_once, most = dict.fromkeys("ab", 0), dict.fromkeys("ab", 0)

    async def work(name: str) -> None:
        async with one_at_a_time(name):
            at_once[name] += 1
            most[name] = max(most[name], at_once[name])
            await next_slice()
            at_once[name] -= 1

    await asyncio.gather(*(work(name) for name in "aaabbb"))
    assert most == {"a": 1, "b": 1}
