"""What an answer claims, and which marks stand behind it."""

import pytest

from app.documents.claims import claims


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("It is long [1]. It is blue.", [("It is long [1].", "1"), ("It is blue.", "")]),
        (
            "The Inn is 518 long [1], and the Rhine is 1,233 [2][3].",
            [("The Inn is 518 long [1]", "1"), (", and the Rhine is 1,233 [2][3].", "23")],
        ),
        ("It is long [1], [2].", [("It is long [1], [2].", "12")]),
        (
            "According to [1] and [2], it is long.",
            [("According to [1] and [2], it is long.", "12")],
        ),
        (
            "河很长[1]，也很蓝而且非常非常美丽动人的一条大河呢[2]。",
            [("河很长[1]", "1"), ("，也很蓝而且非常非常美丽动人的一条大河呢[2]。", "2")],
        ),
        ("[1]", [("[1]", "1")]),
        ("", []),
    ],
)
def test_claims_end_behind_their_marks(content: str, found: list[tuple[str, str]]) -> None:
    made = [
        (content[slice(*each.span)], "".join(mark[1] for mark in each.marks))
        for each in claims(content)
    ]
    assert made == found
