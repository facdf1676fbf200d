"""XML of strangers: piece by piece, and nothing in it grows or is fetched."""

import io

import pytest

from app.documents.document import FileState, Unreadable
from app.documents.markup import drop, expanded_size, local, page_tree, parts, tree

LEVELS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
BOMB = f'<!DOCTYPE x [<!ENTITY a0 "ha">{LEVELS}]><x>&a9;</x>'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_an_entity_bomb_is_refused_with_the_figure(encoding: str) -> None:
    data = BOMB.encode(encoding)
    for take in (lambda: tree(data, "a.docx"), lambda: list(parts(io.BytesIO(data), "a.docx"))):
        with pytest.raises(Unreadable, match=r"a\.docx declares .* grow to 2,000 MB") as caught:
            take()
        assert caught.value.state is FileState.TOO_LARGE


def test_entities_in_a_circle_count_as_more_than_any_limit() -> None:
    assert expanded_size("a", {"a": "&b;", "b": "&a;"}) > 10**9


def test_a_file_of_this_machine_is_not_put_in() -> None:
    data = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>before &e; after</x>'
    assert "root" not in "".join(tree(data, "a").itertext())


def test_damaged_markup_is_said() -> None:
    for take in (lambda: tree(b"<x><y></x>", "a"), lambda: list(parts(io.BytesIO(b"<x>"), "a"))):
        with pytest.raises(Unreadable, match="damaged inside"):
            take()


def test_a_long_file_is_never_held_as_a_whole() -> None:
    data = b"<x>" + b"<p>words of a paragraph</p>" * 50_000 + b"</x>"
    count = most_children = 0
    for element in parts(io.BytesIO(data), "a"):
        if local(element) == "p":
            most_children = max(most_children, len(element.getparent()))
            drop(element)
            count += 1
    assert count == 50_000
    # libxml2 is a piece of the file ahead.
    assert most_children < 3_000


def test_an_empty_page_is_none() -> None:
    assert page_tree("", "a") is None
