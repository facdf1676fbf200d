"""What is left out: never what must stay, never more often than it must."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.context import (
    FULL,
    ROOMY,
    DoesNotFit,
    Outlook,
    Piece,
    Pieces,
    Plan,
    prompt_limit,
    scaled,
)

LIMIT = 1000


def pieces(*sizes: int, num_fixed: int = 0, pinned: tuple[int, ...] = ()) -> Pieces:
    return Pieces(
        [Piece(f"m{number}", size, number in pinned) for number, size in enumerate(sizes)],
        num_fixed,
    )


def test_what_fits_is_sent_whole() -> None:
    assert pieces(300, 300, 300).within(LIMIT) == Plan("", 900, 0)


def test_the_oldest_turns_go_until_there_is_room_for_more() -> None:
    assert pieces(300, 300, 300, 100).within(LIMIT) == Plan("m2", 400, 2)


def test_a_cut_stays_until_the_room_is_full_again() -> None:
    assert pieces(300, 300, 300, 300, 250).within(LIMIT, "m2") == Plan("m2", 850, 2)
    assert pieces(300, 300, 300, 300, 350).within(LIMIT, "m2") == Plan("m4", 350, 4)


def test_a_pinned_turn_is_sent_though_older_and_newer_ones_are_not() -> None:
    plan = pieces(300, 200, 300, 300, pinned=(1,)).within(LIMIT)
    assert plan == Plan("m3", 500, 2)


def test_the_newest_message_is_sent_though_it_fills_the_room_alone() -> None:
    assert pieces(300, 300, 990).within(LIMIT) == Plan("m2", 990, 2)


def test_a_cut_of_another_branch_counts_for_nothing() -> None:
    assert pieces(300, 300).within(LIMIT, "elsewhere") == Plan("", 600, 0)
    assert pieces(300, 300).sent_from("elsewhere") == Plan("", 600, 0)


def test_what_was_newly_left_out_is_named() -> None:
    conversation = pieces(300, 300, 300, 300, 350)
    plan = conversation.within(LIMIT, "m2")
    assert [piece.first_id for piece in conversation.left_out(plan, "m2")] == ["m2", "m3"]


@pytest.mark.parametrize(("longest_answer", "limit"), [(100, 900), (1024, 750)])
def test_an_answer_keeps_its_length_or_a_quarter(longest_answer: int, limit: int) -> None:
    assert prompt_limit(1000, longest_answer) == limit


histories = st.lists(
    st.builds(Piece, st.just(""), st.integers(1, 400), st.sampled_from([False] * 5 + [True])),
    min_size=1,
    max_size=60,
)


def named(history: list[Piece]) -> list[Piece]:
    """With an id each; the newest is what is being asked, so it is not pinned."""
    last = len(history) - 1
    return [
        Piece(f"m{number}", piece.num_tokens, piece.is_pinned and number < last)
        for number, piece in enumerate(history)
    ]


@given(histories, st.integers(0, 200))
def test_system_pinned_and_newest_are_always_sent_and_the_rest_fits(
    history: list[Piece], num_fixed: int
) -> None:
    conversation = Pieces(named(history), num_fixed)
    plan = conversation.within(LIMIT)
    left_out = conversation.left_out(plan)
    assert not any(piece.is_pinned for piece in left_out)
    assert conversation.pieces[-1] not in left_out
    sizes = [piece.num_tokens for piece in conversation.pieces]
    assert plan.num_tokens == num_fixed + sum(sizes) - sum(each.num_tokens for each in left_out)
    sent = [piece for piece in conversation.pieces if piece not in left_out]
    must = num_fixed + sum(piece.num_tokens for piece in sent if piece.is_pinned)
    must += conversation.pieces[-1].num_tokens
    assert plan.num_tokens <= FULL * LIMIT or plan.num_tokens == must
    if left_out and plan.num_tokens != must:
        assert plan.num_tokens <= ROOMY * LIMIT
        # One turn less would have been too many tokens to stay below.
        assert plan.num_tokens + left_out[-1].num_tokens > ROOMY * LIMIT


@given(st.lists(st.integers(5, 90), min_size=50, max_size=80))
def test_over_fifty_turns_a_cut_is_rare_and_the_prefix_is_the_same_between_cuts(
    sizes: list[int],
) -> None:
    first_id, prefix = "", []
    since_cut = LIMIT
    for number in range(1, len(sizes) + 1):
        conversation = pieces(*sizes[:number], num_fixed=50)
        plan = conversation.within(LIMIT, first_id)
        left_out = conversation.left_out(plan)
        sent = [piece for piece in conversation.pieces if piece not in left_out]
        assert plan.num_tokens <= FULL * LIMIT
        if plan.first_id == first_id:
            assert sent[: len(prefix)] == prefix
            since_cut += sizes[number - 1]
        else:
            # From the cut on, as much was said as lies between roomy and full.
            assert since_cut >= (FULL - ROOMY) * LIMIT - 90
            since_cut = sizes[number - 1]
        first_id, prefix = plan.first_id, sent


@given(st.lists(st.integers(0, 500), max_size=30), st.integers(0, 20_000))
def test_scaled_sizes_add_up(sizes: list[int], total: int) -> None:
    if any(sizes):
        assert sum(scaled(sizes, total)) == total
    assert all(size >= 0 for size in scaled(sizes, total))


@pytest.mark.parametrize(
    ("number", "words"),
    [(1, "leave out its oldest turn, let it be"), (4, "leave out its 4 oldest turns, let them be")],
)
def test_one_turn_that_would_be_left_out_is_not_counted(number: int, words: str) -> None:
    outlook = Outlook(
        num_tokens=1200,
        limit=1000,
        max_request_tokens=1300,
        num_left_out=number,
        num_tokens_left_out=300,
        num_summed_up=number,
        larger=None,
    )
    assert words in str(DoesNotFit(outlook))
