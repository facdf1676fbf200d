"""What `bench chats` makes of what it measured, and a small real run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app import cli
from app.bench.chat_client import Answer, Counts
from app.bench.chat_history import Plan
from app.bench.chat_servers import OurServer, RunningServer
from app.bench.chat_sides import Side
from app.bench.chat_texts import Texts
from app.bench.chat_workloads import WORKLOADS, Step
from app.bench.chats import alone, measure, ratios, row_of, rows_of, wanted, whole_of
from app.bench.compare import Pair
from app.bench.machine import Used
from engine.errors import UsageError
from tests.app.bench.fake_chat_server import KEY, FakeChatServer
from tests.app.bench.test_chat_workloads import WordTokenizer

W4, W6 = WORKLOADS[3], WORKLOADS[5]


def answer(
    ttft: float = 1.0, read: int | None = 5, gaps: tuple[float, ...] = (), **more: Any
) -> Answer:
    counts = Counts(prompt=100, prefilled=read, cached=90, restored=5)
    return Answer(text="x", ttft_s=ttft, gaps_s=gaps, counts=counts, **more)


def test_a_row_has_medians_and_95_of_100() -> None:
    found = row_of(
        "W1",
        "ours",
        [
            answer(ttft / 1000, read)
            for ttft, read in zip(range(1, 102), range(201, 302), strict=True)
        ],
    )
    assert (found["turns"], found["ttft_ms"], found["ttft_p95_ms"]) == (101, 51, pytest.approx(96))
    assert (found["read"], found["read_p95"]) == (251, pytest.approx(296))
    assert found["read_all"] == sum(range(201, 302))
    assert (found["prompt"], found["cached"], found["restored"]) == (100, 90, 5)
    assert "slowdown" not in found


def test_the_gaps_of_all_turns_are_taken_together() -> None:
    quick = [answer(gaps=(0.01,) * 9)] * 10
    assert row_of("W1", "ours", quick)["gap_p95_ms"] == pytest.approx(10)
    slow = answer(gaps=(0.5,) * 10)
    assert row_of("W1", "ours", [*quick, slow])["gap_p95_ms"] == pytest.approx(500)


def test_what_a_server_does_not_tell_stays_empty() -> None:
    silent = Answer(text="x", ttft_s=1.0)
    found = row_of("W1", "peer", [silent, silent])
    assert [found[name] for name in ("prompt", "read", "cached", "restored")] == [None] * 4
    assert found["gap_p95_ms"] is None
    assert "read_all" not in found


def test_a_slowdown_is_the_middle_of_those_of_each_turn() -> None:
    turns = [answer(ttft, alone_s=before) for ttft, before in ((2.0, 1.0), (9.0, 3.0), (8.0, 2.0))]
    assert row_of("W8", "ours", turns)["slowdown"] == 3.0


def test_each_turn_is_compared_with_its_twin() -> None:
    assert ratios(Pair({"W1": answer(1.0)}, {"W1": answer(4.0)})) == {"W1": 0.25}


def test_what_a_process_used_is_told_where_it_is_known() -> None:
    assert whole_of(Used(2.5, 3_000_000), 9.0) == {
        "asked_s": 9.0,
        "processor_s": 2.5,
        "written_mb": 3.0,
    }
    assert whole_of(Used(2.5, None), 9.0)["written_mb"] is None
    assert whole_of(None, 9.0) == {"asked_s": 9.0}


def test_a_side_alone_goes_through_as_many_turns_as_pairs_were_wanted() -> None:
    numbers: list[int] = []

    def step(number: int) -> Step:
        numbers.append(number)
        return {"W1": answer()}

    assert len(alone(step, 3, minutes=1)) == 3
    assert numbers == [0, 1, 2]
    assert len(alone(step, 3, minutes=0)) == 1


@pytest.fixture
def fakes() -> Iterator[tuple[FakeChatServer, FakeChatServer]]:
    with FakeChatServer() as ours, FakeChatServer("llama", places=1) as theirs:
        yield ours, theirs


def test_both_sides_go_through_a_workload_in_pairs(
    fakes: tuple[FakeChatServer, FakeChatServer],
) -> None:
    plan = Plan(texts=Texts(WordTokenizer()), context=2000, turns=4, chats=4, tokens=5)  # type: ignore[arg-type]
    with (
        Side(RunningServer(fakes[0].url, KEY), 5) as ours,
        Side(RunningServer(fakes[1].url, KEY), 5) as theirs,
    ):
        measured = measure(W4, plan, [ours, theirs], pairs=3, minutes=0.02)
    assert len(measured.steps[0]) == len(measured.steps[1]) >= 1
    assert measured.num_restless == 0
    asked = [[one.prompt for one in fake.asked] for fake in fakes]
    assert asked[0] == asked[1]
    first, second = rows_of(measured)
    assert (first["label"], second["label"]) == ("W4 peer", "W4 peer")
    assert first["turns"] == second["turns"] == len(measured.steps[0])
    assert first["read_all"] < second["read_all"]
    values = [
        one["W4"].ttft_s / other["W4"].ttft_s for one, other in zip(*measured.steps, strict=True)
    ]
    assert min(values) <= first["low"] <= first["ratio"] <= first["high"] <= max(values)
    assert "ratio" not in second
    assert first["asked_s"] == ours.asked_s and second["asked_s"] == theirs.asked_s


def test_workloads_are_chosen_by_name() -> None:
    assert [workload.name for workload in wanted("")] == [f"W{number}" for number in range(1, 9)]
    assert [workload.name for workload in wanted("w6, W1")] == ["W1", "W6"]
    with pytest.raises(UsageError, match="no workload W10"):
        wanted("W1,W10")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--server nowhere", "There is no llama-server at nowhere"),
        ("--server a --url http://b", "One peer at a time"),
        ("--url ftp://b", "no address of a server"),
        ("--turns 0", "--turns must be at least 1"),
        ("--only W0", "no workload W0"),
        ("--texts nowhere", "no text in a .txt file of nowhere"),
    ],
)
def test_wrong_use_is_told_before_anything_is_started(
    arguments: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "chats", *arguments.split()]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.model
def test_our_server_reads_only_what_is_new(home: Path, starter: Path) -> None:
    from engine.backends.llama_cpp.model import LlamaModel

    model = LlamaModel(starter, facts_only=True)
    texts = Texts(model.vocabulary)
    rows = {}
    with Side(OurServer(home, starter, 1024), 4) as side:
        for first_text, workload in enumerate((W4, W6)):
            plan = Plan(
                texts=texts, context=1024, turns=2, chats=2, tokens=4, first_text=1000 * first_text
            )
            (rows[workload.name],) = rows_of(measure(workload, plan, [side], 3, minutes=5))
    model.close()
    # A question with what a template puts around it; of the answer before at most its last token.
    assert rows["W4"]["read"] < 32 < rows["W4"]["prompt"]
    # What was asked before is held, and one token brings the first of the answer.
    assert rows["W6"]["read_all"] == rows["W6"]["turns"] == 3
    assert all(row["side"] == "ours" and row["processor_s"] > 0 for row in rows.values())
