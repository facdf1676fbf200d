"""Beam search on the running engine: the answers of a plain search, beside everybody else."""

import asyncio
import codecs
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from engine.async_engine import AsyncEngine
from engine.beam_search import BeamResult, search
from engine.engine import Engine
from engine.errors import InglenookError, InvalidParams, UsageError
from engine.guided.answer import Guidance
from engine.guided.grammar import GrammarKind
from engine.kv.segment import Belonging
from engine.logprobs import TokenLogprob, likeliest, log_total
from engine.request import IN_FRONT, FinishReason, RequestOptions
from engine.sampling.beam import BeamParams, BeamSearch, EarlyStopping
from tests.engine.guided.forms import accepts, compiled, of_schema
from tests.engine.run import GREEDY
from tests.fakes import END, FakeBackend, answer_alone, fake_config, logits_after

PROMPT = list(range(40))
PARAMS = replace(GREEDY, max_tokens=8, ignore_eos=False)


class Room:
    """An engine on its thread over a fake backend."""

    def __init__(self) -> None:
        config = fake_config(cells=2048, running=6, sequences=12, batch=64)
        self.backend = FakeBackend(config)
        self.engine = AsyncEngine(Engine(self.backend, config), self.backend.max_request_tokens)

    async def search(
        self, num_beams: int, guidance: Guidance | None = None, **changes: Any
    ) -> BeamResult:
        beams = BeamParams(num_beams=num_beams, num_answers=num_beams, length_penalty=0.5)
        params = replace(PARAMS, **changes)
        tokenizer = self.backend.tokenizer
        return await search(self.engine, tokenizer, PROMPT, beams, params, IN_FRONT, guidance)


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    opened = Room()
    yield opened
    opened.engine.close()


def plain_search(num_beams: int, max_tokens: int = 8) -> list[tuple[tuple[int, ...], float]]:
    params = BeamParams(num_beams=num_beams, num_answers=num_beams, length_penalty=0.5)
    beams = BeamSearch(params, max_tokens, 1, lambda token_ids: token_ids[-1] == END)
    goes_on = True
    while goes_on:
        goes_on = beams.advance(
            [_nexts([*PROMPT, *beam.token_ids], beams.num_candidates) for beam in beams.running]
        )
    return [(answer.token_ids, answer.score) for answer in beams.answers]


def _text(token_ids: Sequence[int]) -> str:
    """Half a character at the end is no text yet."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(token_ids))


def _nexts(token_ids: Sequence[int], num: int) -> list[TokenLogprob]:
    row = logits_after(token_ids)
    total = log_total(row)
    return [TokenLogprob(int(each), float(row[each]) - total) for each in likeliest(row, num)]


@pytest.mark.parametrize("num_beams", [1, 2, 5])
async def test_the_answers_are_those_of_a_plain_search(room: Room, num_beams: int) -> None:
    result = await room.search(num_beams)
    expected = plain_search(num_beams)
    assert len(result.answers) == num_beams
    for answer, (token_ids, score) in zip(result.answers, expected, strict=True):
        assert answer.score == pytest.approx(score, abs=1e-5)
        without_end = token_ids[:-1] if token_ids[-1] == END else token_ids
        assert answer.token_ids == without_end
        is_ended = token_ids[-1] == END
        assert answer.finish_reason is (FinishReason.STOP if is_ended else FinishReason.LENGTH)
        assert answer.text == _text(without_end)


async def test_beams_read_the_prompt_once(room: Room) -> None:
    result = await room.search(4)
    computed = sum(count for batch in room.backend.model_runner.batches for _, count, _ in batch)
    assert result.timings.prefilled_tokens == len(PROMPT)
    # After the prompt one token for each beam and step, at most.
    assert computed <= len(PROMPT) + 4 * 7
    assert result.timings.completion_tokens == sum(len(each.token_ids) for each in result.answers)


async def test_others_are_answered_as_alone_meanwhile(room: Room) -> None:
    async def chat(seed: int) -> None:
        prompt = [(seed * 7 + each) % 250 for each in range(30)]
        tokens: list[int] = []
        with room.engine.submit(prompt, replace(GREEDY, max_tokens=40)) as stream:
            async for output in stream:
                tokens += output.token_ids
        assert tokens == answer_alone(prompt, replace(GREEDY, max_tokens=40), 2048)

    results = await asyncio.gather(room.search(5), chat(1), chat(2), room.search(3))
    assert [answer.token_ids for answer in results[0].answers][0]  # type: ignore[union-attr]
    assert results[0].answers[0].score == pytest.approx(plain_search(5)[0][1], abs=1e-5)  # type: ignore[union-attr]
    assert results[3].answers[0].score == pytest.approx(plain_search(3)[0][1], abs=1e-5)  # type: ignore[union-attr]


@pytest.mark.parametrize("max_tokens", [12, 25, 60])
async def test_every_beam_of_a_form_is_in_that_form(room: Room, max_tokens: int) -> None:
    form = of_schema(
        {
            "type": "object",
            "properties": {"a": {"enum": ["x", "yy", "zzz"]}, "b": {"type": "boolean"}},
            "required": ["a"],
            "additionalProperties": False,
        }
    )
    result = await room.search(4, Guidance(form), max_tokens=max_tokens)
    for answer in result.answers:
        assert answer.finish_reason is FinishReason.STOP
        json.loads(answer.text)
        assert accepts(form, answer.text)
    assert len({answer.text for answer in result.answers}) == len(result.answers)


async def test_the_likeliest_of_some_choices_is_found(room: Room) -> None:
    choices = ["abc", "abd", "xyz", "q"]
    form = compiled(GrammarKind.CHOICE, json.dumps(choices))
    result = await room.search(4, Guidance(form))

    def logprob(text: str) -> float:
        token_ids = [*text.encode(), END]
        places = range(len(token_ids))
        rows = [logits_after([*PROMPT, *token_ids[:place]]) for place in places]
        return sum(float(rows[i][token_ids[i]]) - log_total(rows[i]) for i in places)

    assert sorted(answer.text for answer in result.answers) == sorted(choices)
    for answer in result.answers:
        assert answer.logprob == pytest.approx(logprob(answer.text), abs=1e-4)


async def test_a_stop_text_ends_a_beam(room: Room) -> None:
    whole = (await room.search(2)).answers[0]
    middle = whole.text[3]
    stopped = await room.search(2, stop=(middle,))
    assert all(middle not in answer.text for answer in stopped.answers)


async def test_bans_and_penalties_count_for_beams(room: Room) -> None:
    best = (await room.search(3)).answers[0].token_ids[0]
    banned = await room.search(3, logit_bias=((best, -100.0),))
    assert all(best not in answer.token_ids for answer in banned.answers)
    longer = await room.search(3, min_tokens=8)
    assert all(len(answer.token_ids) == 8 for answer in longer.answers)
    # All tokens of the prompt count as said.
    penalised = await room.search(5, repetition_penalty=10.0)
    said = {token_id for answer in penalised.answers for token_id in answer.token_ids}
    assert not said & set(PROMPT)
    assert any(set(answer.token_ids) & set(PROMPT) for answer in (await room.search(5)).answers)


async def test_what_leaves_nothing_is_said(room: Room) -> None:
    everything = tuple((each, -100.0) for each in range(END + 2))
    with pytest.raises(InglenookError, match="banned"):
        await room.search(2, logit_bias=everything)


async def test_a_search_that_is_cancelled_leaves_nothing_running(room: Room) -> None:
    room.backend.model_runner.hold()
    searching = asyncio.create_task(room.search(4))
    await asyncio.sleep(0.05)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    room.backend.model_runner.let_go()
    assert len((await room.search(2)).answers) == 2


def test_early_stopping_has_three_ways() -> None:
    assert {each.value for each in EarlyStopping} == {"true", "false", "never"}
    with pytest.raises(InvalidParams):
        BeamParams(num_beams=99)
    assert np.isfinite(BeamParams(num_beams=2).length_penalty)


async def test_a_beam_that_goes_round_in_circles_is_ended() -> None:
    room = Room()
    # The next token hangs on the last one alone, so it soon repeats itself.
    room.backend.model_runner.looks_back = 1
    try:
        for guards, shortest in ((True, 416), (False, 700)):
            result = await room.search(
                2, max_tokens=700, loop_guard=guards, ignore_eos=True, logit_bias=((END, -100.0),)
            )
            assert min(len(answer.token_ids) for answer in result.answers) == shortest
    finally:
        room.engine.close()


async def test_more_tokens_than_a_search_may_have_are_refused(room: Room) -> None:
    with pytest.raises(UsageError, match="2,048"):
        await room.search(2, max_tokens=2049)


async def test_beams_are_nobodys_and_their_prompt_is_its_users(room: Room) -> None:
    belonging = Belonging(owner="someone", is_durable=True)
    params = BeamParams(num_beams=3)
    tokenizer = room.backend.tokenizer
    options = RequestOptions(belonging=belonging)
    await search(room.engine, tokenizer, PROMPT, params, PARAMS, options)
    seats: list[tuple[str, int]] = []

    def look(engine: Engine) -> None:
        seats.extend((seat.belonging.owner, seat.length) for seat in engine._seats._cells.seats)

    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    room.engine.do(look, lambda error: loop.call_soon_threadsafe(done.set))
    await done.wait()
    assert all(length <= len(PROMPT) for owner, length in seats if owner == "someone")


async def test_a_slow_way_to_the_end_holds_nobody_up_for_long(room: Room) -> None:
    form = of_schema({"type": "array", "items": {"type": "integer"}, "minItems": 300})
    began = perf_counter()
    with pytest.raises(UsageError, match="No answer|form"):
        await room.search(2, Guidance(form), max_tokens=20)
    # 20 steps of 2 beams, each of which looks for a way that there is not.
    assert perf_counter() - began < 5.0
