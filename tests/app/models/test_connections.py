"""The list of connections."""

import os
from pathlib import Path

from app.models.connections import MOST, Connection, Connections


def test_the_newest_come_first_and_only_this_user_can_read_them(tmp_path: Path) -> None:
    moments = iter([1.0, 2.0])
    connections = Connections(tmp_path / "list", now=lambda: next(moments))
    connections.note("a.example", "one")
    connections.note("b.example", "two")
    assert connections.all() == [
        Connection(2.0, "b.example", "two"),
        Connection(1.0, "a.example", "one"),
    ]
    if os.name == "posix":
        assert (tmp_path / "list").stat().st_mode & 0o077 == 0


def test_nothing_yet_is_an_empty_list_and_what_is_damaged_is_left_out(tmp_path: Path) -> None:
    connections = Connections(tmp_path / "list")
    assert connections.all() == []
    connections.note("a.example", "one")
    with (tmp_path / "list").open("a") as file:
        file.write('no JSON\n7\n{"at": "x"}\n')
        file.write(f'{{"at": 1{"0" * 400}, "host": "a", "why": "b"}}\n{"[" * 100_000}\n')
    assert [each.why for each in connections.all()] == ["one"]


def test_it_does_not_grow_without_end(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text('{"at": 1, "host": "old", "why": ""}\n' * (2 * MOST))
    connections = Connections(path)
    connections.note("new", "")
    assert len(path.read_text().splitlines()) == MOST
    assert connections.all()[0].host == "new"
