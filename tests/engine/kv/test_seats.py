"""Seats: what is held is found again, nobody loses what is in use, and the books agree."""

import random

import pytest

from engine.kv.seats import Seats, common_prefix
from engine.request import Request
from engine.sampling_params import SamplingParams
from tests.fakes import FakeMemory

START = list(range(20))


class Room:
    """Seats over a fake memory, where computing is one call."""

    def __init__(self, cells: int = 128, sequences: int = 4, *, can_cut: bool = True) -> None:
        self.memory = FakeMemory(cells, sequences, can_cut=can_cut)
        self.seats = Seats(self.memory)

    def admit(self, token_ids: list[int], headroom: int = 0) -> Request | None:
        request = Request(list(token_ids), SamplingParams())
        if not self.seats.admit(request, headroom):
            self.seats.check()
            return None
        held = self.memory.tokens(request.seat_id)
        assert held == request.token_ids[: request.num_computed_tokens]
        assert request.num_computed_tokens < request.num_tokens
        self.seats.check()
        return request

    def compute(self, request: Request, num_tokens: int | None = None) -> bool:
        """The next tokens of a request; False: no room."""
        start = request.num_computed_tokens
        num_tokens = num_tokens or request.num_tokens - start
        if not self.seats.extend(request, num_tokens):
            return False
        tokens = request.token_ids[start : start + num_tokens]
        self.memory.append(request.seat_id, tokens, self.memory.free_cells()[: len(tokens)])
        request.num_computed_tokens += num_tokens
        self.seats.check()
        return True

    def hold(self, token_ids: list[int]) -> None:
        """An idle seat with these tokens."""
        request = self.admit(token_ids)
        assert request is not None
        assert self.compute(request)
        self.release(request)

    def release(self, request: Request) -> None:
        self.seats.release(request)
        self.seats.check()


def test_a_prompt_that_continues_an_idle_seat_takes_it_over() -> None:
    room = Room()
    room.hold(START)
    request = room.admit([*START, 1, 2])
    assert request is not None
    assert request.num_computed_tokens == 20
    assert room.seats.num_idle == 0


def test_a_prompt_that_shares_a_beginning_forks_and_the_other_keeps_its_end() -> None:
    room = Room()
    room.hold([*START, 50, 51])
    request = room.admit([*START, 60, 61])
    assert request is not None
    assert request.num_computed_tokens == 20
    assert room.compute(request)
    assert room.memory.tokens(1 - request.seat_id) == [*START, 50, 51]
    assert room.seats.num_free_cells == 128 - 24


def test_a_short_beginning_is_not_worth_a_fork() -> None:
    room = Room()
    room.hold([1, 2, 3, 4, 5, 6, 7, 9])
    request = room.admit([1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert request is not None
    assert request.num_computed_tokens == 0


def test_among_equal_beginnings_the_idle_seat_that_ends_there_is_continued() -> None:
    room = Room()
    room.hold(START)
    running = room.admit([*START, 1])
    assert running is not None
    assert room.compute(running)
    fork = room.admit([*START, 2])
    assert fork is not None
    seat = fork.seat_id
    room.release(fork)
    assert room.seats.num_idle == 1
    request = room.admit([*START, 3])
    assert request is not None
    assert (request.seat_id, request.num_computed_tokens) == (seat, 20)


def test_with_one_sequence_a_fork_becomes_a_cut() -> None:
    room = Room(sequences=1)
    room.hold([*START, 50, 51])
    request = room.admit([*START, 60])
    assert request is not None
    assert request.num_computed_tokens == 20


def test_a_running_seat_is_never_cut() -> None:
    room = Room(sequences=1)
    running = room.admit([*START, 50, 51])
    assert running is not None
    assert room.compute(running)
    assert room.admit([*START, 60]) is None
    assert room.memory.tokens(running.seat_id) == [*START, 50, 51]


def test_a_memory_that_cannot_fork_starts_afresh() -> None:
    room = Room(can_cut=False)
    room.hold([*START, 50, 51])
    request = room.admit([*START, 60])
    assert request is not None
    assert request.num_computed_tokens == 0


def test_the_least_recently_used_idle_seat_goes_first() -> None:
    room = Room(cells=64, sequences=3)
    room.hold([1] * 20)
    room.hold([2] * 20)
    room.hold([*([1] * 20), 7])
    request = room.admit([3] * 40)
    assert request is not None
    assert room.compute(request)
    again = room.admit([*([1] * 20), 7, 8])
    assert again is not None
    assert again.num_computed_tokens == 21


def test_what_a_newcomer_continues_is_not_evicted_for_it() -> None:
    room = Room(cells=64, sequences=4)
    room.hold([1] * 20)
    room.hold([2] * 20)
    request = room.admit([*([1] * 20), *([3] * 40)])
    assert request is not None
    assert request.num_computed_tokens == 20
    assert room.compute(request)


def test_no_room_for_prompt_and_headroom_is_a_refusal_that_changes_nothing() -> None:
    room = Room(cells=64)
    room.hold(START)
    running = room.admit([9] * 30)
    assert running is not None
    assert room.compute(running)
    assert room.admit([*START, *([4] * 10)], headroom=5) is None
    assert room.seats.num_idle == 1
    assert room.seats.num_free_cells == 14
    assert room.admit([*START, *([4] * 10)], headroom=4) is not None


def test_evicting_a_fork_frees_only_what_nobody_else_holds() -> None:
    room = Room(cells=64)
    room.hold([*START, 50, 51])
    running = room.admit([*START, 60, 61])
    assert running is not None
    assert room.compute(running)
    assert room.seats.evict_idle()
    assert room.seats.num_free_cells == 64 - 22
    assert not room.seats.evict_idle()
    room.seats.check()


def test_forgetting_everything_leaves_an_empty_memory() -> None:
    room = Room()
    room.hold(START)
    room.seats.forget_everything()
    room.seats.check()
    assert room.seats.num_free_cells == 128
    assert room.memory.num_clears == 1
    request = room.admit(START)
    assert request is not None
    assert request.num_computed_tokens == 0


@pytest.mark.parametrize("can_cut", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_random_history_of_chats_keeps_the_books(seed: int, can_cut: bool) -> None:
    """Few cells, few sequences, prompts that share beginnings: all paths are taken."""
    choose = random.Random(seed)
    room = Room(cells=96, sequences=5, can_cut=can_cut)
    known = [choose.choices(range(4), k=24) for _ in range(3)]
    running: list[Request] = []
    for _ in range(2000):
        action = choose.randrange(6)
        if action <= 1:
            base = choose.choice(known)
            token_ids = base[: choose.randrange(1, len(base) + 1)] + choose.choices(
                range(4), k=choose.randrange(0, 30)
            )
            request = room.admit(token_ids, headroom=choose.randrange(8))
            if request is not None:
                running.append(request)
        elif action <= 3 and running:
            request = choose.choice(running)
            left = request.num_tokens - request.num_computed_tokens
            if left == 0:
                request.token_ids.append(choose.randrange(4))
            else:
                room.compute(request, choose.randrange(1, left + 1))
        elif action == 4 and running:
            request = running.pop(choose.randrange(len(running)))
            room.release(request)
            known = [*known[-4:], request.token_ids[:48]]
        elif action == 5 and running:
            # A step ended early: some of its tokens were computed, some were not.
            request = choose.choice(running)
            room.seats.extend(request, 1)
            held = choose.randrange(request.num_computed_tokens + 1)
            room.seats.resync(request, held)
            assert request.num_computed_tokens == room.memory.length(request.seat_id)
            room.seats.check()
        for request in running:
            held = room.memory.tokens(request.seat_id)
            assert held == request.token_ids[: request.num_computed_tokens]


@pytest.mark.parametrize("seed", range(5))
def test_the_common_prefix_is_the_one_counted_by_hand(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(300):
        held = choose.choices(range(2), k=choose.randrange(200))
        wanted = held[: choose.randrange(len(held) + 1)] + choose.choices(range(2), k=10)
        limit = choose.randrange(min(len(held), len(wanted)) + 1)
        by_hand = 0
        while by_hand < limit and held[by_hand] == wanted[by_hand]:
            by_hand += 1
        assert common_prefix(held, wanted, limit) == by_hand
