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


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("Take `a[1]` of it [2].", [("Take `a[1]` of it [2].", "2")]),
        (
            "Take ``x! `a[1]` y. z`` now. So [2].",
            [("Take ``x! `a[1]` y. z`` now.", ""), ("So [2].", "2")],
        ),
        (
            "So it is:\n```python\nb = a[1]\n\nIt is long [2].\n```\nIt is blue [3].",
            [("So it is:", ""), ("It is blue [3].", "3")],
        ),
        (
            "- One:\n  ~~~~\n  a[1]\n  ~~~\n  a[2]\n  ~~~~~\n- Two [3].",
            [("- One:", ""), ("- Two [3].", "3")],
        ),
        ("> ```\n> a[1]\n> ```\nSo [2].", [("So [2].", "2")]),
        ("It is so [1].\n```\na[2]", [("It is so [1].", "1")]),
        ("A tick ` is no code [1].", [("A tick ` is no code [1].", "1")]),
        ("```\r\na[1]\r\n```\r\nSo [2].", [("So [2].", "2")]),
        ("```\n```", []),
        ("```", []),
    ],
)
def test_code_has_no_marks_and_claims_nothing(content: str, found: list[tuple[str, str]]) -> None:
    made = [
        (content[slice(*each.span)], "".join(mark[1] for mark in each.marks))
        for each in claims(content)
    ]
    assert made == found


def test_the_text_of_a_claim_has_its_code_and_not_its_marks() -> None:
    (claim,) = claims("Take `a[1]. b` of it [2].")
    assert claim.text == "Take `a[1]. b` of it  ."
