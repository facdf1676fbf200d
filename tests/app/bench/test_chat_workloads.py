"""Each workload goes through a server whose tokens are words, and every count is known before."""

from collections.abc import Iterator
from itertools import islice

import pytest

from app.bench import chat_workloads
from app.bench.chat_client import Answer
from app.bench.chat_history import Plan, Talker
from app.bench.chat_servers import RunningServer
from app.bench.chat_sides import Side
from app.bench.chat_texts import Texts, question
from app.bench.chat_workloads import WORKLOADS, Step
from engine.errors import EngineError, UsageError
from tests.app.bench.fake_chat_server import KEY, FakeChatServer, common

TOKENS = 5
GLUE = 2
"""`<user>` and `<assistant>` around each question."""
THOUGHT = "<think> hm </think>"


class WordTokenizer:
    """A word is a token, as for the fake server."""

    def encode(self, text: str) -> list[int]:
        return [0] * len(text.split())


class RestartedServer(RunningServer):
    """It forgets all when it ends, but what its user keeps and brings back."""

    can_restart = True

    def __init__(self, fake: FakeChatServer) -> None:
        super().__init__(fake.url, KEY)
        self.fake = fake
        self.story: list[str] = []
        self._saved: dict[str, tuple[str, ...]] = {}

    def end(self, *, kill: bool) -> None:
        self.story.append("killed" if kill else "stopped")
        self.fake.forget()

    def keep(self, chat_id: str) -> None:
        self.story.append(f"keep {chat_id}")
        assert self.fake.asked[-1].user == chat_id, "its slot holds another conversation"
        self._saved[chat_id] = self.fake.held[-1]

    def bring_back(self, chat_id: str) -> None:
        self.story.append(f"bring back {chat_id}")
        self.fake.held.append(self._saved[chat_id])


def plan(**changes: int) -> Plan:
    sizes = {"context": 2000, "turns": 4, "chats": 4, "tokens": TOKENS} | changes
    return Plan(texts=Texts(WordTokenizer()), **sizes)  # type: ignore[arg-type]


@pytest.fixture
def fake() -> Iterator[FakeChatServer]:
    with FakeChatServer() as fake:
        yield fake


def steps(name: str, fake: FakeChatServer, num: int, **changes: int) -> list[Step]:
    script = next(workload.script for workload in WORKLOADS if workload.name == name)
    with Side(RunningServer(fake.url, KEY), TOKENS) as side:
        return list(islice(script(side, plan(**changes)), num))


def answers(name: str, fake: FakeChatServer, num: int, **changes: int) -> list[Answer]:
    return [answer for step in steps(name, fake, num, **changes) for answer in step.values()]


def read(found: list[Answer]) -> list[int | None]:
    return [answer.counts.prefilled for answer in found]


def words(text: str) -> int:
    return len(text.split())


def test_w1_reads_only_the_question_of_each_turn(fake: FakeChatServer) -> None:
    found = answers("W1", fake, 4)
    assert read(found) == [words(question(turn)) + GLUE for turn in (1, 2, 3, 4)]
    prompts = [answer.counts.prompt for answer in found]
    for turn, (before, after) in enumerate(zip(prompts, prompts[1:], strict=False), start=2):
        assert before is not None
        assert after == before + TOKENS + words(question(turn)) + GLUE


def test_w1_begins_anew_when_its_turns_are_over(fake: FakeChatServer) -> None:
    answers("W1", fake, 5, turns=2)
    users = [asked.user for asked in fake.asked if asked.user != "probe"]
    assert users == ["w1-0"] * 3 + ["w1-1"] * 3 + ["w1-2"] * 2


def test_a_conversation_fits_the_context_to_its_last_turn(fake: FakeChatServer) -> None:
    for name in ("W1", "W3", "W4", "W6"):
        answers(name, fake, 40, context=1000)
    assert max(len(asked.prompt) for asked in fake.asked) < 1000
    # Not for want of anything to read.
    assert max(len(asked.prompt) for asked in fake.asked) > 500


def test_w2_reads_only_questions_where_all_conversations_are_held(fake: FakeChatServer) -> None:
    found = answers("W2", fake, 8)
    assert read(found) == [words(question(1)) + GLUE] * 4 + [words(question(2)) + GLUE] * 4
    users = [asked.user for asked in fake.asked[-8:]]
    assert users == [f"w2-0-{index}" for index in range(4)] * 2


def test_w2_reads_everything_again_where_one_conversation_is_held() -> None:
    with FakeChatServer(places=1) as fake:
        found = answers("W2", fake, 4)
    shared = words(plan().texts.system) + 2  # `<system>` before it and `<user>` behind
    assert read(found) == [(answer.counts.prompt or 0) - shared for answer in found]


def test_w2_has_more_conversations_than_the_context_holds(fake: FakeChatServer) -> None:
    answers("W2", fake, 1)
    opened = [len(asked.prompt) for asked in fake.asked if asked.user.startswith("w2")][:4]
    assert sum(opened) > 1.9 * 2000


def test_w3_reads_the_document_once(fake: FakeChatServer) -> None:
    found = answers("W3", fake, 8)
    first = fake.asked[1]
    assert first.prefilled > 1000
    # A new conversation shares the document, and the words with which two questions begin alike.
    for turn in (1, 2, 3):
        alike = max(
            common(tuple(question(turn).split()), tuple(question(earlier).split()))
            for earlier in range(turn)
        )
        assert found[turn - 1].counts.prefilled == words(question(turn)) - alike + 1
    assert read(found[3:]) == [words(question(turn)) + GLUE for turn in range(4, 9)]
    assert len({asked.user for asked in fake.asked[1:]}) == 4


def test_w4_reads_only_what_is_new_where_both_branches_are_held(fake: FakeChatServer) -> None:
    found = answers("W4", fake, 5)
    edited = fake.asked[6]
    # All up to the first answer, and the `<user>` of the message that was edited.
    shared = (*fake.asked[1].prompt, *["said"] * TOKENS, "<user>")
    assert edited.prompt[: len(shared)] == shared
    assert found[0].counts.prefilled == len(edited.prompt) - len(shared) > 100
    assert read(found[1:]) == [words(question(turn)) + GLUE for turn in (4, 4, 5, 5)]


def test_w4_reads_the_other_branch_again_where_one_is_held() -> None:
    with FakeChatServer(places=1) as fake:
        found = answers("W4", fake, 5)
    shared = len(fake.asked[1].prompt) + TOKENS + 1  # and `<user>`
    assert read(found) == [(answer.counts.prompt or 0) - shared for answer in found]


def test_w4_is_one_conversation(fake: FakeChatServer) -> None:
    answers("W4", fake, 3)
    assert {asked.user for asked in fake.asked} == {"probe", "w4-0"}


def test_w5_goes_on_after_each_kind_of_end(
    fake: FakeChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = RestartedServer(fake)
    monkeypatch.setattr(RestartedServer, "is_running", False)
    with Side(server, TOKENS) as side:
        found = list(islice(chat_workloads.restarts(side, plan()), 4))
    assert [next(iter(step)) for step in found] == ["W5 stopped"] * 2 + ["W5 killed"] * 2
    assert server.story == [
        *("keep w5-0-0", "keep w5-0-1", "stopped"),
        *("bring back w5-0-0", "keep w5-0-0", "bring back w5-0-1", "keep w5-0-1", "killed"),
        *("bring back w5-0-0", "keep w5-0-0", "bring back w5-0-1"),
    ]
    last = [answer for step in found for answer in step.values()]
    assert read(last) == [words(question(turn)) + GLUE for turn in (1, 1, 2, 2)]


def test_w5_reads_everything_again_where_nothing_outlives_the_end(
    fake: FakeChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RestartedServer, "is_running", False)
    monkeypatch.setattr(RestartedServer, "keep", lambda self, chat_id: None)
    monkeypatch.setattr(RestartedServer, "bring_back", lambda self, chat_id: None)
    with Side(RestartedServer(fake), TOKENS) as side:
        (step,) = islice(chat_workloads.restarts(side, plan()), 1)
    counts = step["W5 stopped"].counts
    # The question of the probe begins with another role.
    assert counts.prefilled == counts.prompt


def test_w6_reads_one_token_of_what_was_asked_before(fake: FakeChatServer) -> None:
    fake.write_s = 0.001
    found = answers("W6", fake, 3, turns=2)
    assert read(found) == [1, 1, 1]
    stopped = fake.asked[2]
    assert stopped.body["max_tokens"] == 2000 // 8
    assert stopped.prompt == fake.asked[3].prompt
    # The piece that was read before the stop does not stay in the history.
    assert fake.asked[4].prompt[: len(stopped.prompt)] == stopped.prompt
    assert fake.asked[4].prompt[len(stopped.prompt) :].count("said") == TOKENS


def test_w7_reads_again_what_stands_behind_the_thought() -> None:
    with FakeChatServer(thought=THOUGHT) as fake:
        found = answers("W7", fake, 3)
    again = 4 * TOKENS
    assert read(found) == [
        again + words(question(turn)) + GLUE + words(THOUGHT) for turn in (1, 2, 3)
    ]


def test_w8_tells_how_long_the_reader_and_the_talkers_wait() -> None:
    with FakeChatServer(read_s=0.0005, write_s=0.002) as fake:
        (found,) = answers("W8", fake, 1)
    sizes = [asked.prefilled for asked in fake.asked if asked.user in ("w8-0-alone", "w8-0-beside")]
    # Half a millisecond for each word that is read.
    assert found.alone_s is not None and found.alone_s > 0.0005 * sizes[0]
    assert found.ttft_s > 0.0005 * sizes[1]
    assert found.counts.prefilled == sizes[1]
    # Nobody is written to while a prompt is read here, so each of the three waited once.
    long = [gap for gap in found.gaps_s if gap > 0.0004 * sizes[1]]
    assert len(long) >= 3


def test_a_talker_that_fails_is_no_measurement(fake: FakeChatServer) -> None:
    class Failing:
        def say(self, *_: object) -> None:
            raise EngineError("it broke off")

    talker = Talker(Failing(), "Hello", 5)  # type: ignore[arg-type]
    talker.wait()
    talker.stop()
    with pytest.raises(EngineError, match="broke off"):
        talker.gaps(0.0, 1.0)


def test_a_talkers_gaps_are_those_that_touch_the_time() -> None:
    class Still:
        def say(self, text: str, max_tokens: int, on_piece: object) -> None:
            for moment in (0.0, 1.0, 3.0, 6.0, 10.0):
                assert on_piece(moment)  # type: ignore[operator]

    talker = Talker(Still(), "Hello", 5)  # type: ignore[arg-type]
    talker.wait()
    talker._thread.join()
    assert talker.gaps(0.5, 3.5) == [1.0, 2.0, 3.0]
    assert talker.gaps(1.0, 3.0) == [2.0]


def test_both_sides_are_asked_the_same() -> None:
    asked = []
    for words_ in ("ours", "llama"):
        with FakeChatServer(words_) as fake:
            answers("W4", fake, 5)
            asked.append([one.prompt for one in fake.asked])
    assert asked[0] == asked[1]


def test_turns_that_do_not_fit_are_wrong_use(fake: FakeChatServer) -> None:
    with pytest.raises(UsageError, match="do not fit a context of 512"):
        answers("W1", fake, 1, context=512, turns=40)
