"""Threads and tasks that share a model: one generation runs at a time, in order."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
import time
from concurrent.futures import Future
from random import Random

import pytest

from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference import Generation, GenerationOptions, LanguageModel
from bpe_tokenizer.inference.fair_lock import FairLock
from counting_model import Counting


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[FairLock]:
    """The lock of each request that was made."""
    made: list[FairLock] = []
    acquire = FairLock.acquire

    def recorded(lock: FairLock) -> Future[None]:
        ticket = acquire(lock)
        made.append(lock)
        return ticket

    monkeypatch.setattr(FairLock, "acquire", recorded)
    return made


def test_threads_wait_in_the_order_of_asking(requests: list[FairLock]) -> None:
    loaded = Counting(pause=0.002)
    model = LanguageModel(loaded)
    order: list[int] = []
    first = model.generate([0], GenerationOptions(50))
    next(first)

    def work(index: int) -> None:
        generation = model.generate([index], GenerationOptions(5))
        new_id = next(generation)
        order.append(index)  # while the others wait
        assert [new_id, *generation] == list(range(index + 1, index + 6))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(10, 18)]
    for count, thread in enumerate(threads, start=2):
        thread.start()
        while len(requests) < count:
            time.sleep(0.001)
    assert len(list(first)) == 49
    for thread in threads:
        thread.join(60)
    assert order == list(range(10, 18))
    assert loaded.most_running == 1


def test_a_turn_that_is_lost_is_over() -> None:
    """As if Ctrl-C arrived between its acquisition and its use."""
    lock = FairLock()
    lost, waiting_and_lost, waiting = lock.acquire(), lock.acquire(), lock.acquire()
    assert (lost.done(), waiting_and_lost.done(), waiting.done()) == (True, False, False)
    del waiting_and_lost
    del lost
    gc.collect()
    assert waiting.done()
    last = lock.acquire()
    lock.release(waiting)
    lock.release(waiting)
    assert last.done()
    assert not lock.acquire().done()


def test_who_would_wait_for_itself_is_told() -> None:
    model = LanguageModel(Counting())
    first, second = model.generate([5]), model.generate([50], GenerationOptions(2))
    assert next(first) == 6
    with pytest.raises(GenerationError, match="begun in this thread and has not ended"):
        next(second)
    first.close()
    assert list(second) == [51, 52]

    async def tasks() -> None:
        outer, inner = model.generate([5]), model.generate([6])
        async for _ in outer:
            with pytest.raises(GenerationError, match="begun in this task"):
                await anext(inner)
            with pytest.raises(GenerationError, match="begun in this thread"):
                next(inner)
            break
        await outer.aclose()
        assert [new_id async for new_id in inner][:1] == [7]

    asyncio.run(tasks())


def test_waiting_can_be_cancelled(requests: list[FairLock]) -> None:
    model = LanguageModel(Counting())
    first = model.generate([5])
    next(first)
    waiting = model.generate([5])
    found: list[list[int]] = []
    thread = threading.Thread(target=lambda: found.append(list(waiting)))
    thread.start()
    while len(requests) < 2:
        time.sleep(0.001)
    waiting.cancel()
    thread.join(60)
    assert (found, waiting.finish_reason) == ([[]], "cancelled")
    first.close()
    assert list(model.generate([5], GenerationOptions(1))) == [6]


def test_a_task_that_waits_can_be_cancelled() -> None:
    model = LanguageModel(Counting(pause=0.002))

    async def read(generation: Generation) -> list[int]:
        return [new_id async for new_id in generation]

    async def run() -> None:
        first, second, third = (model.generate([index], GenerationOptions(20)) for index in (0, 100, 200))
        tasks = [asyncio.create_task(read(generation)) for generation in (first, second, third)]
        while first.new_tokens < 2:
            await asyncio.sleep(0.001)
        tasks[1].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert results[0] == list(range(1, 21))
        assert isinstance(results[1], asyncio.CancelledError)
        assert results[2] == list(range(201, 221))

    asyncio.run(asyncio.wait_for(run(), 60))
    assert list(model.generate([5], GenerationOptions(1))) == [6]


def test_more_tasks_than_threads() -> None:
    """Those that wait take no thread: the one that runs finds one."""
    model = LanguageModel(Counting())

    async def read(index: int) -> list[int]:
        return [new_id async for new_id in model.generate([index], GenerationOptions(3))]

    async def run() -> list[list[int]]:
        return list(await asyncio.gather(*map(read, range(200))))

    found = asyncio.run(asyncio.wait_for(run(), 60))
    assert found == [[index + 1, index + 2, index + 3] for index in range(200)]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_threads_do_one_generation_runs(seed: int) -> None:
    loaded = Counting()
    model = LanguageModel(loaded)
    failures: list[BaseException] = []

    def work(random: Random) -> None:
        try:
            for _ in range(60):
                start, count = random.randrange(80), random.randrange(1, 12)
                generation = model.generate([start], GenerationOptions(count))
                taken = list(itertools.islice(generation, random.randrange(13)))
                assert taken == list(range(start + 1, start + 1 + count))[: len(taken)]
                end = random.choice(["cancel", "close", "read", "forget", "thread"])
                if end == "cancel":
                    generation.cancel()
                    assert list(generation) == []
                elif end == "read":
                    assert len(taken) + len(list(generation)) == count
                elif end == "thread":
                    closing = threading.Thread(target=generation.close)
                    closing.start()
                    list(generation)
                    closing.join(60)
                elif end == "close":
                    generation.close()
                del generation
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(Random(10 * seed + index),)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert not any(thread.is_alive() for thread in threads)
    assert (loaded.running, loaded.most_running) == (0, 1)
