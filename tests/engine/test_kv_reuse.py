"""What conversations read again, counted exactly: only what is new."""

import pytest

from engine.kv.segment import Belonging
from engine.request import RequestOptions
from tests.engine.run import EngineRun
from tests.engine.talk import SEGMENT, Talk, durable
from tests.fakes import fake_config


def test_a_turn_that_only_appends_reads_what_is_new_and_the_last_token(talk: Talk) -> None:
    history: list[int] = talk.words(60)
    _, history = talk.turn(history, 10)
    for num_new in (1, 7, 40):
        num_read, history = talk.turn(history, num_new)
        # The last token of an answer is sampled and never computed.
        assert num_read == num_new + 1


def test_another_answer_to_the_same_prompt_reads_one_token(talk: Talk) -> None:
    prompt = talk.words(70)
    talk.turn(prompt, 0)
    assert talk.again(prompt) == 1


def test_an_edited_turn_is_read_from_its_first_changed_token_on(ranges: Talk) -> None:
    _, first = ranges.turn(ranges.words(50), 20)
    _, second = ranges.turn(first, 30)
    num_read, _ = ranges.turn(second[: len(first)], 25)
    assert num_read == 25


def test_the_branch_that_was_left_is_there_when_one_returns(ranges: Talk) -> None:
    _, trunk = ranges.turn(ranges.words(50), 20)
    _, left = ranges.turn(trunk, 30)
    _, other = ranges.turn(trunk, 30)
    for _ in range(5):
        num_read, left = ranges.turn(left, 5)
        assert num_read == 5 + 1
        num_read, other = ranges.turn(other, 5)
        assert num_read == 5 + 1


def test_another_chat_in_between_changes_nothing(talk: Talk) -> None:
    _, one = talk.turn(talk.words(80), 5)
    talk.turn(talk.words(90), 5)
    assert talk.turn(one, 9)[0] == 9 + 1


def test_thirty_chats_in_the_cells_of_three_read_nothing_twice() -> None:
    talk = Talk(fake_config(cells=320, sequences=8, batch=64))
    histories = [talk.turn(talk.words(60), 10)[1] for _ in range(30)]
    for number, history in enumerate(histories):
        num_read, histories[number] = talk.turn(history, 5)
        assert num_read == 5 + 1


@pytest.mark.parametrize("num_steps", range(1, 8))
def test_a_cancelled_prompt_is_not_read_again_as_far_as_it_was_read(
    ranges: Talk, num_steps: int
) -> None:
    prompt = ranges.words(150)
    number = ranges.run.submit(prompt, max_tokens=3)
    for _ in range(num_steps):
        ranges.run.step()
    num_computed = ranges.run.requests[number].num_computed_tokens
    ranges.run.abort(number)
    assert ranges.again(prompt) == 150 - min(num_computed, 149)


def test_a_title_costs_the_chat_nothing_and_leaves_nothing_behind(ranges: Talk) -> None:
    _, history = ranges.turn(ranges.words(60), 10)
    idle = ranges.run.engine.kv_usage()
    title = RequestOptions(is_background=True)
    ranges.turn(history, 12, title)
    assert ranges.run.engine.kv_usage() == idle
    assert ranges.turn(history, 5)[0] == 5 + 1


def test_a_title_forks_the_chat_and_reads_only_its_question(ranges: Talk) -> None:
    _, history = ranges.turn(ranges.words(60), 10)
    assert ranges.turn(history, 12, RequestOptions(is_background=True))[0] == 12 + 1


def test_what_runs_in_the_background_steps_aside_at_once(ranges: Talk) -> None:
    background = ranges.run.submit(
        ranges.words(300), options=RequestOptions(is_background=True), max_tokens=50
    )
    ranges.run.step()
    front = ranges.run.submit(ranges.words(30), max_tokens=5)
    while front in ranges.run.open:
        ranges.run.step()
        assert ranges.run.requests[background].sequence_id is None
    ranges.run.finish()
    ranges.run.check_answer(background)


def test_a_prepared_prefix_is_held_when_the_turn_comes(ranges: Talk) -> None:
    _, history = ranges.turn(ranges.words(60), 10)
    canonical = history[:70] + ranges.words(25)
    prepared = ranges.run.submit(canonical, options=RequestOptions(is_preparation=True))
    ranges.run.finish()
    ranges.run.check_answer(prepared)
    assert ranges.turn(canonical, 6)[0] == 6
    assert ranges.turn(history, 6)[0] == 6 + 1


def test_a_clean_stop_keeps_everything(talk: Talk) -> None:
    histories = {}
    for owner in "abc":
        histories[owner] = talk.turn(talk.words(75), 10, durable(owner))[1]
    talk.quit()
    talk.start()
    for owner, history in histories.items():
        assert talk.turn(history, 5, durable(owner))[0] == 5 + 1
        number = max(talk.run.requests)
        assert talk.run.timings(number).restored_from == "disk"


def test_a_killed_app_reads_at_most_one_segment_again() -> None:
    talk = Talk()
    histories = {}
    for owner in "abc":
        histories[owner] = talk.turn(talk.words(75), 10, durable(owner))[1]
        talk.run.rest()
    talk.start()
    for owner, history in histories.items():
        assert talk.turn(history, 5, durable(owner))[0] <= 5 + SEGMENT


def test_what_may_not_reach_the_disk_does_not(talk: Talk) -> None:
    temporary = RequestOptions(belonging=Belonging(owner="t"))
    _, history = talk.turn(talk.words(75), 10, temporary)
    talk.quit()
    assert not talk.disk.files
    talk.start()
    assert talk.turn(history, 5)[0] == len(history) + 5


def test_a_deleted_chat_is_nowhere(talk: Talk) -> None:
    _, history = talk.turn(talk.words(75), 10, durable("a"))
    talk.run.rest()
    talk.run.engine.forget("a")
    talk.run.engine.check()
    talk.run.rest()
    assert not talk.disk.files
    assert talk.run.engine.kv_usage().ram_bytes == 0
    assert talk.turn(history, 5, durable("b"))[0] == len(history) + 5


def test_a_chat_deleted_while_it_is_answered_leaves_nothing(talk: Talk) -> None:
    number = talk.run.submit(talk.words(80), options=durable("a"), max_tokens=20)
    for _ in range(6):
        talk.run.step()
    talk.run.engine.maintain()
    talk.run.engine.forget("a")
    talk.run.finish()
    talk.run.check_answer(number)
    talk.quit()
    assert not talk.disk.files


@pytest.mark.parametrize("num_steps", [0, 3])
def test_a_chat_deleted_while_it_waits_to_be_answered_leaves_nothing(
    talk: Talk, num_steps: int
) -> None:
    """Also when it has been answered in part and was sent back to the queue."""
    number = talk.run.submit(talk.words(80), options=durable("a"), max_tokens=20)
    for _ in range(num_steps):
        talk.run.step()
    for request in talk.run.engine._scheduler.running:
        talk.run.engine._scheduler.requeue(request)
    talk.run.engine.forget("a")
    talk.run.finish()
    talk.run.check_answer(number)
    talk.run.rest()
    assert talk.run.engine.kv_usage().num_segments == 0
    talk.quit()
    assert not talk.disk.files


def test_what_is_asked_on_a_path_that_is_kept_stays(ranges: Talk) -> None:
    _, trunk = ranges.turn(ranges.words(50), 20, durable("a"))
    prompt = trunk + ranges.words(30)
    ranges.run.submit(prompt, options=durable("a"))
    ranges.run.engine.forget("a", [trunk])
    ranges.run.finish()
    ranges.quit()
    ranges.start()
    assert ranges.again(prompt, durable("a")) == 1


def test_deleting_all_that_is_kept_costs_running_answers_only_time(talk: Talk) -> None:
    for owner in "ab":
        talk.turn(talk.words(75), 10, durable(owner))
    numbers = [talk.run.submit(talk.words(80), max_tokens=20) for _ in range(3)]
    for _ in range(6):
        talk.run.step()
    talk.disk.others = ["a", "another"]
    talk.run.engine.forget_all()
    talk.run.engine.check()
    assert talk.run.engine.kv_usage().num_segments == 0
    assert not (talk.disk.files or talk.disk.others)
    talk.run.finish()
    for number in numbers:
        talk.run.check_answer(number)


def test_a_chat_deleted_while_the_app_was_away_is_in_no_cell_either(talk: Talk) -> None:
    _, one = talk.turn(talk.words(75), 10, durable("a"))
    _, two = talk.turn(talk.words(75), 10, durable("b"))
    talk.run.engine.retain(["b"])
    talk.run.engine.check()
    assert talk.turn(one, 5)[0] == len(one) + 5
    assert talk.turn(two, 5, durable("b"))[0] == 5 + 1


def test_what_memory_let_go_of_is_stored_again_when_its_chat_leaves_the_cells(
    ranges: Talk,
) -> None:
    engine = ranges.run.engine
    _, history = ranges.turn(ranges.words(120), 10, durable("a"))
    ranges.run.rest()
    ranges.disk.is_slow = True
    engine.limit_kv(0, 0)
    assert engine.kv_usage().num_segments == 0
    engine.limit_kv(10**6, 10**6)
    ranges.quit()
    ranges.start()
    assert ranges.turn(history, 5, durable("a"))[0] == 5 + 1


def test_an_idle_chat_that_memory_let_go_of_is_stored_before_it_makes_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.kv.tiers.MAX_IDLE_CELLS", 100)
    talk = Talk()
    engine = talk.run.engine
    history = talk.turn(talk.words(140), 5, durable("a"))[1]
    talk.run.rest()
    engine.limit_kv(0, 0)
    engine.limit_kv(10**6, 10**6)
    talk.run.submit(talk.words(30), max_tokens=60)
    for _ in range(40):
        talk.run.step()
        engine.maintain()
    talk.run.finish()
    num_read, _ = talk.turn(history, 5, durable("a"))
    assert num_read == 5 + 1


@pytest.mark.parametrize("num_shared", [8, 40])
def test_a_temporary_chat_that_begins_like_another_never_reaches_the_disk(
    talk: Talk, num_shared: int
) -> None:
    beginning = talk.words(num_shared)
    temporary = RequestOptions(belonging=Belonging(owner="t"))
    _, private = talk.turn(beginning, 75, temporary)
    _, other = talk.turn(beginning, 75, durable("a"))
    _, private = talk.turn(private, 5, temporary)
    _, other = talk.turn(other, 5, durable("a"))
    talk.quit()
    talk.start()
    assert talk.turn(other, 5, durable("a"))[0] == 5 + 1
    secret = private[num_shared:]
    written = [row.token_ids for row in talk.disk.rows.values()]
    assert written
    for words in written:
        pieces = [words[i : i + 5] for i in range(len(words) - 4)]
        assert not any(tuple(secret[i : i + 5]) in pieces for i in range(len(secret) - 4))


def test_what_was_shortened_while_it_was_on_its_way_back_is_read(ranges: Talk) -> None:
    _, trunk = ranges.turn(ranges.words(50), 0, durable("a"))
    _, one = ranges.turn(trunk, 30, durable("a"))
    _, two = ranges.turn(trunk, 30, durable("b"))
    ranges.quit()
    ranges.start()
    number = ranges.run.submit(one + ranges.words(5), max_tokens=4)
    request = ranges.run.requests[number]
    scheduler = ranges.run.engine._scheduler
    scheduler._admit()
    assert ranges.run.engine._seats.is_returning(request)
    ranges.run.engine.forget("a")
    ranges.run.finish()
    ranges.run.check_answer(number)
    assert ranges.turn(two, 5, durable("b"))[0] == 5 + 1


def test_deleting_one_of_two_forks_leaves_the_other_whole(ranges: Talk) -> None:
    _, trunk = ranges.turn(ranges.words(50), 20, durable("a"))
    _, one = ranges.turn(trunk, 30, durable("a"))
    _, two = ranges.turn(trunk, 30, durable("b"))
    ranges.run.rest()
    ranges.run.engine.forget("a")
    ranges.run.engine.check()
    ranges.quit()
    ranges.start()
    assert ranges.turn(two, 5, durable("b"))[0] == 5 + 1
    assert ranges.again(one) == len(one) - len(trunk)


def test_a_reproducible_turn_reads_its_grid_the_last_answer_and_what_is_new(talk: Talk) -> None:
    reproducible = RequestOptions(is_reproducible=True)
    _, history = talk.turn(talk.words(150), 0, reproducible)
    num_read, _ = talk.turn(history, 10, reproducible)
    assert num_read == len(history) + 10 - 128


def test_a_reproducible_answer_never_uses_what_was_computed_otherwise(talk: Talk) -> None:
    prompt = talk.words(150)
    talk.turn(prompt, 0)
    assert talk.again(prompt, RequestOptions(is_reproducible=True)) == 150


def test_what_was_computed_reproducibly_serves_everybody(ranges: Talk) -> None:
    prompt = ranges.words(150)
    ranges.turn(prompt, 0, RequestOptions(is_reproducible=True))
    ranges.turn(ranges.words(50), 0)
    assert ranges.again(prompt) == 150 - 128


def test_reproducible_pieces_are_the_same_whoever_else_is_there() -> None:
    """The grid of pieces, and nobody else in the batch, is what makes the bits equal."""
    alone, crowded = Talk(), Talk()
    prompt = alone.words(200)
    reproducible = RequestOptions(is_reproducible=True, belonging=Belonging(owner="a"))
    alone.run.submit(prompt, options=reproducible, max_tokens=5)
    alone.run.finish()
    others = [crowded.run.submit(crowded.words(90), max_tokens=30) for _ in range(3)]
    crowded.run.step()
    number = crowded.run.submit(prompt, options=reproducible, max_tokens=5)
    crowded.run.submit(crowded.words(90), max_tokens=30)
    crowded.run.finish()

    def shape(run: EngineRun) -> list[list[int]]:
        mine = max(each for each in run.requests if run.requests[each].options.is_reproducible)
        return [
            [num_tokens for _, num_tokens, _ in batch]
            for batch in run.runner.batches
            if any(request_id == mine for request_id, _, _ in batch)
        ]

    assert shape(crowded.run) == shape(alone.run)
    assert all(len(batch) == 1 for batch in shape(crowded.run))
    for each in (*others, number):
        crowded.run.check_answer(each)


def test_idle_chats_leave_the_cells_while_somebody_writes_and_return_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.kv.tiers.MAX_IDLE_CELLS", 100)
    talk = Talk()
    histories = [talk.turn(talk.words(80), 5)[1] for _ in range(6)]
    number = talk.run.submit(talk.words(30), max_tokens=120)
    for _ in range(60):
        talk.run.step()
        talk.run.engine.maintain()
    in_use = sum(talk.run.memory.length(i) for i in range(talk.run.memory.num_sequences))
    assert in_use <= 100 + talk.run.requests[number].num_tokens
    talk.run.finish()
    talk.run.check_answer(number)
    for history in histories:
        assert talk.turn(history, 5)[0] == 5 + 1


def test_a_refused_restore_is_read_instead(talk: Talk) -> None:
    _, history = talk.turn(talk.words(75), 10, durable("a"))
    talk.quit()
    talk.start()
    talk.run.memory.refuses = True
    assert talk.turn(history, 5, durable("a"))[0] == len(history) + 5


def test_kv_that_gave_no_numbers_is_not_given_to_anybody_again(ranges: Talk) -> None:
    prompt = ranges.words(75)
    ranges.turn(prompt, 0, durable("a"))
    ranges.run.rest()
    ranges.run.runner.has_nan = lambda prefix: len(prefix) > 80
    number = ranges.run.submit(prompt + ranges.words(30), options=durable("a"))
    ranges.run.finish()
    assert number in ranges.run.errors
    ranges.run.runner.has_nan = lambda prefix: False
    assert ranges.again(prompt, durable("a")) == 75


def test_what_is_set_aside_leaves_the_cells_and_comes_back(ranges: Talk) -> None:
    engine = ranges.run.engine
    _, history = ranges.turn(ranges.words(100), 10)
    engine.set_aside()
    assert engine.kv_usage().ram_bytes > 0
    num_read, _ = ranges.turn(history, 5)
    timings = ranges.run.timings(max(ranges.run.tokens))
    assert num_read == 5 + 1 and timings.cached_tokens == 0
    assert timings.restored_tokens == len(history) - 1
    engine.check()
