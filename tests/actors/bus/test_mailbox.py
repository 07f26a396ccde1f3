"""The queue between a connection and those who read."""

import asyncio

import anyio
import pytest

from temporality.actors.bus.mailbox import Mailbox
from temporality.actors.bus.port import BusClosed


async def test_items_come_in_the_order_they_were_put_to_whoever_waits_first():
    mailbox = Mailbox()
    taken = []

    async def take(name):
        taken.append((name, await anext(mailbox)))

    async with anyio.create_task_group() as tasks:
        for name in "ab":
            tasks.start_soon(take, name)
        await anyio.wait_all_tasks_blocked()
        mailbox.put(1)
        mailbox.put(2)
    assert taken == [("a", 1), ("b", 2)]


async def test_a_full_mailbox_refuses_and_counts():
    mailbox = Mailbox(size_max=2)
    assert [mailbox.put(number) for number in range(4)] == [True, True, False, False]
    assert (mailbox.dropped, mailbox.drain()) == (2, [0, 1])


async def test_closing_lets_readers_take_what_is_there_and_then_end():
    mailbox = Mailbox()
    mailbox.put(1)
    mailbox.close()
    assert not mailbox.put(2)
    assert [item async for item in mailbox] == [1]


async def test_closing_with_an_error_raises_it_in_every_reader():
    mailbox = Mailbox()
    raised = []

    async def read():
        try:
            await anext(mailbox)
        except BusClosed as error:
            raised.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        mailbox.close(BusClosed("over"))
        mailbox.close()
    assert [str(error) for error in raised] == ["over", "over"]
    with pytest.raises(BusClosed):
        await anext(mailbox)


async def test_an_item_meant_for_a_reader_that_is_cancelled_goes_to_the_next():
    mailbox = Mailbox()
    taken = []

    async def take():
        taken.append(await anext(mailbox))

    first, second = asyncio.ensure_future(take()), asyncio.ensure_future(take())
    await anyio.wait_all_tasks_blocked()
    mailbox.put("kept")  # wakes the first, which is cancelled before it can run
    first.cancel()
    with anyio.fail_after(10):
        await second
    assert (taken, first.cancelled()) == (["kept"], True)
