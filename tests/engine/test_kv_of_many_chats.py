"""Chats that come, go, branch and stop: faults that others' users reported, counted in tokens."""

import random

import pytest

from engine.kv.disk import StoredSegment
from engine.request import IN_FRONT, RequestOptions
from tests.engine.talk import SEGMENT, Talk, durable
from tests.fakes import BYTES_PER_TOKEN, FakeMemory, fake_config


def evict(talk: Talk) -> None:
    talk.run.engine._seats.evict_idle()
    talk.run.engine.check()


# Stopping and starting again


@pytest.mark.parametrize("when", ["never asked", "before it was read", "in its first piece"])
def test_an_empty_chat_is_stored_and_brought_back_as_nothing(talk: Talk, when: str) -> None:
    """ggml-org/llama.cpp#14434, #17107: saving an empty slot crashed."""
    prompt = talk.words(70)
    if when != "never asked":
        number = talk.run.submit(prompt, options=durable("a"))
        if when == "in its first piece":
            talk.run.runner.failures[0] = 0
            talk.run.step()
        talk.run.abort(number)
    talk.quit()
    assert not talk.disk.files
    talk.start()
    talk.quit()
    talk.start()
    assert talk.again(prompt, durable("a")) == len(prompt)


@pytest.mark.parametrize("way", ["cells", "ram", "disk"])
def test_whoever_returns_to_the_branch_that_was_left_reads_one_token(talk: Talk, way: str) -> None:
    """strix-llama.cpp#36: editing a message cut the end of the other branch away."""
    options = durable("a")
    _, trunk = talk.turn(talk.words(50), 20, options)
    old = trunk + talk.words(30)
    _, old_end = talk.turn(old, 0, options)
    _, new_end = talk.turn(trunk + talk.words(25), 0, options)
    if way == "ram":
        evict(talk)
    elif way == "disk":
        talk.quit()
        talk.start()
    assert talk.again(old, options) == 1
    assert talk.turn(old_end, 6, options)[0] == 6 + 1
    assert talk.turn(new_end, 6, options)[0] == 6 + 1


# Stopping an answer


@pytest.mark.parametrize("num_steps", range(1, 12))
def test_a_stopped_chat_goes_on_from_the_last_token_that_was_computed(
    talk: Talk, num_steps: int
) -> None:
    """ggml-org/llama.cpp#29163: an interrupted generation dropped the whole KV. Seven pieces of
    the prompt, then tokens of the answer; the user goes on from what was written."""
    _, history = talk.turn(talk.words(60), 10)
    prompt = history + talk.words(200)
    number = talk.run.submit(prompt, max_tokens=30)
    for _ in range(num_steps):
        talk.run.step()
    request = talk.run.requests[number]
    num_computed, written = request.num_computed_tokens, prompt + talk.run.tokens[number]
    assert num_computed > len(history)
    talk.run.abort(number)
    assert talk.turn(written, 5)[0] == len(written) + 5 - num_computed


# Putting away and bringing back


@pytest.mark.parametrize("sequences", [2, 4])
@pytest.mark.parametrize("way", ["ram", "disk"])
def test_putting_one_chat_away_does_not_lose_the_one_that_is_coming_back(
    sequences: int, way: str
) -> None:
    """antirez/ds4#448: storing the old chat evicted the prefix that was about to be loaded."""
    talk = Talk(fake_config(cells=256, sequences=sequences, running=1, ram=24_000, disk=24_000))
    mine, others = (durable("a"), durable("b")) if way == "disk" else (IN_FRONT, IN_FRONT)
    _, one = talk.turn(talk.words(120), 0, mine)
    if way == "disk":
        talk.run.rest()
    # It fills the cells, and with the first one there is not memory enough for both.
    talk.turn(talk.words(230), 0, others)
    assert talk.turn(one, 3, mine)[0] == 3 + 1


def test_every_token_is_written_to_the_disk_once() -> None:
    """antirez/ds4#174, #353: each turn wrote the whole conversation anew, or all of it twice."""
    talk = Talk(fake_config(cells=512, sequences=8))
    histories = {owner: [7] * 50 for owner in "abc"}
    for turn in range(6):
        for owner, history in histories.items():
            _, histories[owner] = talk.turn(history, 20, durable(owner))
            if turn % 2:
                talk.run.rest()
        if turn == 3:
            talk.quit()
            talk.start()
    talk.quit()
    # The fake's KV of a token, without the names of the tokens before it, which it adds.
    num_tokens = sum(segment.num_bytes - 4 * end_of(segment) for segment in talk.disk.rows.values())
    num_tokens //= BYTES_PER_TOKEN
    shared = 50
    assert num_tokens == sum(len(each) - 1 - shared for each in histories.values()) + shared
    assert talk.disk.num_bytes_written == sum(row.num_bytes for row in talk.disk.rows.values())


def end_of(row: StoredSegment) -> int:
    return row.start + len(row.token_ids)


def test_turns_that_move_to_another_place_are_read_again_and_never_shifted(talk: Talk) -> None:
    """Reuse of KV at other positions garbled answers: ggml-org/llama.cpp#12253, #12160, #9743."""
    _, history = talk.turn(talk.words(120), 30)
    shorter = history[:40] + history[80:]
    num_read, _ = talk.turn(shorter, 5)
    assert num_read == len(shorter) + 5 - (40 if talk.run.memory.can_cut else 0)


def test_keeping_kv_costs_a_chat_that_goes_on_no_copy_while_it_is_answered(ranges: Talk) -> None:
    """abetlen/llama-cpp-python#1293: with the cache on, every turn took longer than without."""
    history = ranges.words(60)
    for _ in range(5):
        _, history = ranges.turn(history, 20, durable("a"), 40)
        assert ranges.run.memory.num_exported == 0
    ranges.run.rest()
    # And once each, when nobody waits.
    assert ranges.run.memory.num_exported == (len(history) - 1) // SEGMENT * SEGMENT


def test_whoever_writes_gets_the_lowest_cells_when_idle_chats_have_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every step looks over all cells up to the highest one in use: ggml-org/llama.cpp#10054,
    #25804."""
    monkeypatch.setattr("engine.kv.tiers.MAX_IDLE_CELLS", 100)
    talk = Talk(fake_config(cells=1024, sequences=16))
    for _ in range(7):
        talk.turn(talk.words(90), 5)
    number = talk.run.submit(talk.words(30), max_tokens=120)
    for _ in range(60):
        talk.run.step()
        talk.run.engine.maintain()
    memory, request = talk.run.memory, talk.run.requests[number]
    assert request in talk.run.engine._scheduler.running
    cells = [cell for _, cell in memory._held[request.seat_id]]
    assert max(cells) < 100 + len(cells)
    talk.run.finish()
    talk.run.check_answer(number)


def test_a_cut_that_was_refused_is_never_taken_for_one() -> None:
    """abetlen/llama-cpp-python#2108, #2133: an ignored refusal left KV of other words behind."""
    ranges = Talk(fake_config(cells=256, running=1, sequences=2))
    memory, refused = ranges.run.memory, []

    def truncate(sequence_id: int, num_tokens: int) -> bool:
        if 0 < num_tokens < memory.length(sequence_id):
            refused.append(sequence_id)
            return False
        return FakeMemory.truncate(memory, sequence_id, num_tokens)

    memory.truncate = truncate  # type: ignore[method-assign]
    choose = random.Random(3)
    chats = [ranges.words(60)]
    for turn in range(60):
        chat = choose.choice(chats)
        length = choose.choice([len(chat), choose.randrange(1, len(chat) + 1)])
        prompt = chat[:length][:150] + ranges.words(20)
        if turn % 3 == 1:
            # All of it was computed, but its last logits are gone.
            ranges.run.runner.failures[ranges.run.runner.num_steps] = 1000
        options = RequestOptions(is_reproducible=turn % 4 == 3)
        # Whose KV is used for which words is checked by the fake memory.
        _, history = ranges.turn(prompt, 0, options, 5)
        chats = [*chats[-3:], history]
    assert len(refused) > 10


# Models whose state cannot be cut


def test_states_that_were_gone_on_from_make_room_for_the_last_ones() -> None:
    """antirez/ds4#174: snapshots of one chat, each within the next, evicted those of others."""
    talk = Talk(fake_config(cells=320, sequences=8, batch=64, ram=700_000), can_cut=False)
    histories = {f"{i}": talk.turn(talk.words(60), 10, durable(f"{i}"))[1] for i in range(30)}
    for _ in range(3):
        for owner, history in histories.items():
            num_read, histories[owner] = talk.turn(history, 5, durable(owner))
            assert num_read == 5 + 1
    every_state = sum(len(history) for history in histories.values()) * BYTES_PER_TOKEN * 4
    assert talk.run.engine.kv_usage().ram_budget < every_state


def test_what_is_done_between_two_turns_costs_no_kind_of_model_the_next_one(talk: Talk) -> None:
    """ggml-org/llama.cpp#24055, #21831: models with a state read everything again in every turn."""
    _, history = talk.turn(talk.words(60), 10)
    title, _ = talk.turn(history, 12, RequestOptions(is_background=True))
    assert title == 12 + 1
    canonical = history[:70] + talk.words(25)
    talk.run.submit(canonical, options=RequestOptions(is_preparation=True))
    talk.run.finish()
    assert talk.turn(canonical, 6)[0] == 6
    assert talk.turn(history, 6)[0] == 6 + 1


def test_turns_beside_a_chat_that_is_written_read_only_what_is_new(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its turns the chat leaves the cells."""
    monkeypatch.setattr("engine.kv.tiers.MAX_IDLE_CELLS", 20)
    _, history = talk.turn(talk.words(60), 10)
    other = talk.run.submit(talk.words(40), max_tokens=150)
    for _ in range(8):
        prompt = history + talk.words(5)
        for _ in range(4):
            talk.run.step()
            talk.run.engine.maintain()
        number = talk.run.submit(prompt, max_tokens=6)
        while number in talk.run.open:
            talk.run.step()
            talk.run.engine.maintain()
        assert talk.run.timings(number).prefilled_tokens == 5 + 1
        history = prompt + talk.run.tokens[number]
    assert other in talk.run.open
    talk.run.finish()
    talk.run.check_answer(other)


@pytest.mark.parametrize("tier", ["ram", "disk"])
@pytest.mark.parametrize("length", [60, 110, 140, 200])
def test_a_state_longer_than_half_of_the_context_comes_back(tier: str, length: int) -> None:
    talk = Talk(fake_config(cells=256, running=1), can_cut=False)
    _, history = talk.turn(talk.words(length), 0, durable("a"))
    if tier == "ram":
        talk.run.engine._seats.evict_idle()
    else:
        talk.quit()
        talk.start()
    assert talk.turn(history, 3, durable("a"))[0] == 3 + 1


@pytest.mark.parametrize("tier", ["ram", "disk"])
def test_a_chat_that_nearly_fills_the_context_comes_back(tier: str) -> None:
    """Only its last segment may lack the room that the way back takes."""
    talk = Talk(fake_config(cells=256, running=1))
    _, history = talk.turn(talk.words(225), 0, durable("a"))
    if tier == "ram":
        talk.run.engine._seats.evict_idle()
    else:
        talk.quit()
        talk.start()
    assert talk.turn(history, 3, durable("a"), 1)[0] <= 3 + 16


@pytest.mark.parametrize(
    ("sequences", "others", "ram"),
    [(1, [210], 20_000), (3, [40] * 4, 25_000), (4, [40] * 6, 31_000)],
)
def test_with_all_seats_taken_putting_one_chat_away_does_not_lose_the_one_that_comes_back(
    sequences: int, others: list[int], ram: int
) -> None:
    talk = Talk(fake_config(cells=256, sequences=sequences, running=1, ram=ram))
    _, one = talk.turn(talk.words(120), 0)
    for length in others:
        talk.turn(talk.words(length), 0)
    store = talk.run.engine._seats.store
    assert store.match(one, len(one)).length == len(one) - 1, "it is in memory whole"
    assert talk.turn(one, 3)[0] == 3 + 1
