"""A second model that guesses changes how fast an answer comes, and nothing else."""

import random
from dataclasses import replace

import pytest

from engine.backends.base import StepFailure
from engine.engine import Engine
from engine.errors import ModelUnsupported
from engine.request import Request, RequestOptions
from engine.sampling.draft_gate import StepCosts
from engine.sampling.draft_model import NEAR_TOKENS, DraftModel, check_vocabularies
from engine.sampling.speculate import DRAFT_PIECE
from tests.engine.run import GREEDY, EngineRun
from tests.fakes import END, ByteTokenizer, EvenCosts, FakeBackend, fake_config, logits_after


class DraftRun(EngineRun):
    """An engine beside whose model a second one guesses. It looks back as far as the first, unless
    `draft_looks_back` says otherwise; then it is mostly wrong."""

    def __init__(
        self,
        *,
        looks_back: int | None = None,
        draft_looks_back: int | None = None,
        cells: int = 1024,
        draft_cells: int = 1024,
        draft_sequences: int = 4,
        costs: StepCosts | None = None,
        draft_costs: StepCosts | None = None,
    ) -> None:
        super().__init__(fake_config(cells=cells), looks_back=looks_back, costs=costs)
        config = fake_config(
            cells=draft_cells, sequences=draft_sequences, running=draft_sequences, batch=64
        )
        self.draft_backend = FakeBackend(config)
        self.draft_backend.model_runner.looks_back = draft_looks_back or looks_back
        self.draft = DraftModel(self.draft_backend, draft_costs or NoCosts())
        config = fake_config(cells=cells)
        self.engine = Engine(self.backend, config, costs or EvenCosts(), self.draft)

    def step(self) -> None:
        super().step()
        self.draft.check()


class NoCosts(EvenCosts):
    """A step that takes no time."""

    def seconds(self, num_tokens: int, num_looks: int) -> float:
        return 0.0


class DearCosts(EvenCosts):
    """As dear as the model itself."""


def prompt(seed: int, length: int = 30) -> list[int]:
    return random.Random(seed).choices(range(200), k=length)


def num_steps(run: EngineRun, number: int) -> int:
    return sum(any(each[0] == number for each in batch) for batch in run.runner.batches)


def test_a_model_that_says_the_same_spares_most_steps() -> None:
    run = DraftRun()
    number = run.submit(prompt(1), max_tokens=60)
    run.finish()
    run.check_answer(number)
    timings = run.timings(number)
    assert timings.accepted_tokens > 45
    assert num_steps(run, number) <= 60 - timings.accepted_tokens + 1


def test_a_model_that_is_always_wrong_changes_nothing_and_is_soon_asked_no_more() -> None:
    run = DraftRun(draft_looks_back=1)
    number = run.submit(prompt(1), max_tokens=100)
    run.finish()
    run.check_answer(number)
    timings = run.timings(number)
    assert timings.accepted_tokens < 5
    assert timings.drafted_tokens > 0
    asked = run.draft_backend.model_runner.num_steps
    dear = DraftRun(draft_looks_back=1, draft_costs=DearCosts())
    number = dear.submit(prompt(1), max_tokens=100)
    dear.finish()
    dear.check_answer(number)
    assert dear.draft_backend.model_runner.num_steps < asked / 10


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_what_is_sampled_is_what_would_be_sampled_without_it(temperature: float) -> None:
    for seed in range(6):
        run = DraftRun()
        number = run.submit(
            prompt(seed), max_tokens=40, temperature=temperature, top_k=2, seed=seed
        )
        run.finish()
        run.check_answer(number)
        assert run.timings(number).accepted_tokens > 0


def test_a_long_prompt_is_read_in_pieces_between_the_tokens_of_the_answer() -> None:
    run = DraftRun(cells=2048, draft_cells=2048)
    number = run.submit(prompt(1, 500), max_tokens=60)
    run.finish()
    run.check_answer(number)
    read = [batch[0][1] for batch in run.draft_backend.model_runner.batches]
    assert max(read) <= DRAFT_PIECE
    assert sum(read) < 700
    assert run.timings(number).accepted_tokens > 30


def test_a_request_that_is_too_long_for_it_is_answered_without_it() -> None:
    run = DraftRun(draft_cells=256)
    number = run.submit(prompt(1, 300), max_tokens=20)
    run.finish()
    run.check_answer(number)
    assert run.timings(number).drafted_tokens == 0


def test_it_guesses_no_end() -> None:
    run = DraftRun()
    ends = [seed for seed in range(200) if logits_after(prompt(seed), None).argmax() == END]
    assert ends, "no prompt after which the fake model ends"
    request = Request(prompt(ends[0]), GREEDY)
    assert run.draft.draft(request, 5) == []


@pytest.mark.parametrize(
    "options", [RequestOptions(is_reproducible=True), RequestOptions(is_background=True)]
)
def test_it_is_not_asked_for_what_is_not_guessed(options: RequestOptions) -> None:
    run = DraftRun()
    number = run.submit(prompt(1), options=options, max_tokens=30)
    run.finish()
    run.check_answer(number)
    assert run.draft_backend.model_runner.num_steps == 0


def test_the_last_to_be_asked_stays_when_it_has_no_room_for_all() -> None:
    run = DraftRun(draft_cells=256, draft_sequences=2)
    numbers = [run.submit(prompt(seed, 60), max_tokens=50) for seed in range(4)]
    run.finish()
    for number in numbers:
        run.check_answer(number)


def test_what_it_held_of_a_request_goes_with_it() -> None:
    run = DraftRun()
    number = run.submit(prompt(1), max_tokens=50)
    for _ in range(5):
        run.step()
    assert any(run.draft_backend.kv_memory.tokens(each) for each in range(4))
    run.abort(number)
    run.draft.check()
    assert not any(run.draft_backend.kv_memory.tokens(each) for each in range(4))


@pytest.mark.parametrize("failure", list(StepFailure))
def test_answers_go_on_when_it_fails(failure: StepFailure) -> None:
    run = DraftRun()
    run.draft_backend.model_runner.failures[6] = failure
    number = run.submit(prompt(1), max_tokens=60)
    run.finish()
    run.check_answer(number)
    drafted = run.timings(number).drafted_tokens
    assert drafted > 0
    more = run.submit(prompt(2), max_tokens=60)
    run.finish()
    run.check_answer(more)
    # What may be damaged is not used again.
    assert (run.timings(more).drafted_tokens == 0) == (failure is StepFailure.BROKEN)


@pytest.mark.parametrize("seed", range(12))
def test_any_history_gives_the_same_answers(seed: int) -> None:
    random_ = random.Random(seed)
    looks_back = random_.choice([2, 3, None])
    run = DraftRun(
        cells=random_.choice([256, 400, 1000]),
        draft_cells=random_.choice([256, 300, 1000]),
        draft_sequences=random_.randrange(1, 5),
        looks_back=looks_back,
        draft_looks_back=random_.choice([None, 1, looks_back]),
    )
    said = prompt(seed, 12)
    for _ in range(400):
        if random_.random() < 0.08 and len(run.open) < 6:
            start = random_.randrange(12)
            run.submit(
                [*said[start:], *prompt(random_.randrange(4), random_.randrange(1, 90))],
                max_tokens=random_.randrange(1, 60),
                temperature=random_.choice([0.0, 0.7]),
                seed=seed,
            )
        if run.open and random_.random() < 0.02:
            run.abort(random_.choice(run.open))
        if random_.random() < 0.05:
            runner = random_.choice([run.runner, run.draft_backend.model_runner])
            kinds = [StepFailure.ABORTED, StepFailure.NO_ROOM]
            runner.failures[runner.num_steps] = random_.choice(kinds)
        if run.engine.has_work:
            run.step()
    run.runner.failures.clear()
    run.finish()
    for number in run.ended:
        run.check_answer(number)
    assert any(run.timings(number).drafted_tokens for number in run.ended)


def test_the_last_tokens_are_read_in_one_step_before_it_guesses() -> None:
    run = DraftRun()
    request = Request(prompt(1, NEAR_TOKENS), GREEDY)
    assert run.draft.is_near(request)
    drafted = run.draft.draft(request, 3)
    assert len(drafted) == 3
    request.token_ids.extend([*drafted[:2], 199, 198])
    assert run.draft.is_near(request)
    run.draft.draft(request, 1)
    read = [batch[0][1] for batch in run.draft_backend.model_runner.batches]
    # The prompt, two guesses; then the two tokens that were others, with nothing again.
    assert read == [NEAR_TOKENS, 1, 1, 2]
    assert run.draft_backend.kv_memory.tokens(3) == request.token_ids


class Renamed(ByteTokenizer):
    """One token spells something else."""

    def token_bytes(self, token_id: int) -> bytes:
        return b"!" if token_id == 65 else super().token_bytes(token_id)


class Endless(ByteTokenizer):
    def is_end(self, token_id: int) -> bool:
        return False


class Longer(ByteTokenizer):
    num_tokens = 300


@pytest.mark.parametrize(
    ("tokenizer", "said"),
    [(Renamed(), "token 65"), (Endless(), "token 256"), (Longer(), "258 and 300")],
)
def test_another_vocabulary_is_refused_with_the_difference(
    tokenizer: ByteTokenizer, said: str
) -> None:
    model, draft = FakeBackend(fake_config()), FakeBackend(fake_config())
    check_vocabularies(model, draft)
    draft.tokenizer = tokenizer
    draft.info = replace(draft.info, name="other")
    with pytest.raises(ModelUnsupported, match=f"other cannot draft for fake.*{said}"):
        check_vocabularies(model, draft)


def test_a_recurrent_model_neither_drafts_nor_is_drafted_for() -> None:
    model, recurrent = FakeBackend(fake_config()), FakeBackend(fake_config(), can_cut=False)
    with pytest.raises(ModelUnsupported, match="cannot draft"):
        check_vocabularies(model, recurrent)
    with pytest.raises(ModelUnsupported, match="cannot use a draft model"):
        check_vocabularies(recurrent, model)


def test_costs_are_unknown_until_they_were_measured() -> None:
    draft = DraftModel(FakeBackend(fake_config()))
    assert not draft.is_ready
    draft.measure()
    assert draft.is_ready
    draft.check()
