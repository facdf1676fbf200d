"""Any path of a tree of messages becomes turns that alternate."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.chat.message import Message, MessageState, Role
from app.chat.turns import Turn, fold_system, normalise
from engine.errors import UsageError


def said(
    role: Role,
    content: str,
    thinking: str = "",
    state: MessageState = MessageState.DONE,
    token_ids: tuple[int, ...] = (),
) -> Turn:
    stored = Message(
        message_id="m",
        conversation_id="c",
        parent_id=None,
        role=role,
        content=content,
        created_at=0.0,
        thinking=thinking,
        state=state,
        token_ids=token_ids,
    )
    return Turn.of(stored)


paths = st.lists(
    st.builds(
        said,
        st.sampled_from(Role),
        st.sampled_from(["", " ", "a", "two\nlines", "\ud800"]),
        st.sampled_from(["", "hm"]),
        st.sampled_from(MessageState),
        st.sampled_from([(), (1, 2)]),
    ),
    max_size=8,
)


@given(paths, st.sampled_from(["", " ", "Be brief."]))
def test_turns_alternate_from_the_user_to_the_user(path: list[Turn], system_prompt: str) -> None:
    assume(any(turn.role is Role.USER and turn.content.strip() for turn in path))
    turns = normalise(path, system_prompt)
    spoken = [turn.role for turn in turns if turn.role is not Role.SYSTEM]
    assert spoken == [Role.USER, Role.ASSISTANT] * (len(spoken) // 2) + [Role.USER]
    assert Role.SYSTEM not in [turn.role for turn in turns[1:]]
    assert all(turn.content.strip() for turn in turns)
    assert Role.SYSTEM not in [turn.role for turn in fold_system(turns)]
    "".join(turn.content for turn in turns).encode()


def test_neighbours_of_one_role_become_one_turn_without_ids() -> None:
    path = [
        said(Role.USER, "a"),
        said(Role.ASSISTANT, "b", token_ids=(1,)),
        said(Role.ASSISTANT, "c", token_ids=(2,)),
        said(Role.USER, "d"),
    ]
    assert normalise(path)[1] == Turn(Role.ASSISTANT, "b\n\nc")


def test_an_answer_that_failed_at_once_leaves_no_turn() -> None:
    failed = said(Role.ASSISTANT, "", state=MessageState.FAILED)
    path = [said(Role.USER, "a"), failed, said(Role.USER, "b")]
    assert normalise(path) == (Turn(Role.USER, "a\n\nb"),)


@pytest.mark.parametrize("state", [MessageState.STOPPED, MessageState.INTERRUPTED])
def test_an_answer_that_was_cut_short_stays_with_its_ids(state: MessageState) -> None:
    cut = said(Role.ASSISTANT, "half an ans", state=state, token_ids=(3, 4))
    path = [said(Role.USER, "a"), cut, said(Role.USER, "b")]
    assert normalise(path)[1] == Turn(Role.ASSISTANT, "half an ans", "", (3, 4))


def test_instructions_in_the_middle_stay_where_they_were_read() -> None:
    path = [
        said(Role.SYSTEM, "Be kind."),
        said(Role.USER, "a"),
        said(Role.ASSISTANT, "b"),
        said(Role.SYSTEM, "It is late."),
        said(Role.USER, "c"),
    ]
    assert normalise(path, "Be brief.") == (
        Turn(Role.SYSTEM, "Be brief.\n\nBe kind."),
        Turn(Role.USER, "a"),
        Turn(Role.ASSISTANT, "b"),
        Turn(Role.USER, "It is late.\n\nc"),
    )


def test_folding_puts_the_system_prompt_before_the_first_question() -> None:
    turns = (Turn(Role.SYSTEM, "Be brief."), Turn(Role.USER, "a"), Turn(Role.ASSISTANT, "b"))
    assert fold_system(turns) == (Turn(Role.USER, "Be brief.\n\na"), Turn(Role.ASSISTANT, "b"))


def test_half_of_a_surrogate_pair_becomes_readable() -> None:
    assert normalise([said(Role.USER, "a\ud83d")]) == (Turn(Role.USER, "a?"),)


def test_a_path_without_a_question_cannot_be_answered() -> None:
    with pytest.raises(UsageError, match="write one first"):
        normalise([said(Role.ASSISTANT, "Welcome!")])
