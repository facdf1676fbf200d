import pytest

from app.eval.paired import difference


def test_what_is_the_same_for_every_question_is_sure() -> None:
    assert difference([1, 0, 1], [1, 0, 1]) == (0, 0, 0)
    assert difference([1.0] * 9, [0.5] * 9) == (0.5, 0.5, 0.5)
    assert difference([], []) is None


def test_few_questions_leave_more_open_than_many() -> None:
    few, many = difference([1, 0], [0, 0]), difference([1, 0] * 200, [0, 0] * 200)
    assert few is not None and many is not None
    assert few.mean == many.mean == 0.5
    assert few.low < many.low < 0.5 < many.high < few.high


def test_pairs_count_and_not_the_two_sums() -> None:
    """The same sums: once every question differs, once none does."""
    apart = difference([1, 0] * 50, [0, 1] * 50)
    assert apart is not None and apart.mean == 0 and apart.low < 0 < apart.high


def test_it_is_the_same_every_time() -> None:
    once = difference([1, 0, 1, 1], [0, 0, 1, 0])
    assert once == difference([1, 0, 1, 1], [0, 0, 1, 0])


def test_pairs_belong_together() -> None:
    with pytest.raises(ValueError):
        difference([1, 0], [1])
