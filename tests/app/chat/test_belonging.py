"""Whose words a request carries, and what may become of their KV."""

import pytest

from app.chat.belonging import is_reserved, is_temporary, program_owner, request_options
from engine.kv.segment import NOBODY


def test_a_chat_belongs_to_itself_and_may_reach_the_disk() -> None:
    belonging = request_options("abc", is_reproducible=True).belonging
    assert (belonging.owner, belonging.is_durable) == ("abc", True)


def test_a_temporary_chat_belongs_to_itself_and_never_reaches_the_disk() -> None:
    belonging = request_options("tmp-abc").belonging
    assert (belonging.owner, belonging.is_durable) == ("tmp-abc", False)


def test_what_is_nobodys_never_reaches_the_disk() -> None:
    assert request_options().belonging == NOBODY
    assert not NOBODY.is_durable


def test_a_programs_user_is_the_same_each_time_and_is_not_told() -> None:
    owner = program_owner("ann@example.com")
    assert owner == program_owner("ann@example.com") != program_owner("bob@example.com")
    assert owner.startswith("v1:")
    assert "ann" not in owner
    assert request_options(owner).belonging.is_durable


def test_a_program_that_names_nobody_asks_for_nobody() -> None:
    assert program_owner("") == ""


@pytest.mark.parametrize("some_id", ["tmp-1", "v1:1"])
def test_ids_of_ours_are_known(some_id: str) -> None:
    assert is_reserved(some_id)
    assert not is_reserved("x" + some_id)
    assert is_temporary(some_id) == some_id.startswith("tmp-")
