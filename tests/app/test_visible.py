"""Names from anybody, shown without doing anything."""

from app.visible import visible


def test_a_name_is_shown_in_one_line_and_in_its_direction() -> None:
    assert visible("/a b/Zuñiga א　🙂.txt") == "/a b/Zuñiga א　🙂.txt"
    assert visible("a\nb\r\x1b[2J‮txt.exe \udce9\t") == "a�b��[2J�txt.exe���"
