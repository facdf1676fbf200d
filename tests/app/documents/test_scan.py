"""What a walk sees, what it leaves out, and when a folder is rather lost than empty."""

import os
import socket
from pathlib import Path

import pytest

from app.documents.scan import (
    MANY,
    Sight,
    Stamp,
    compare,
    is_ignored,
    is_lost,
    is_own,
    is_under,
    look,
    sha256_of,
)

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


def seen(root: Path) -> set[str]:
    sight = look(root)
    assert sight is not None
    return {os.path.relpath(path, root) for path in sight.files}


def write(path: Path, text: str = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_all_files_of_all_folders_are_seen(folder: Path) -> None:
    for name in ("a.txt", "b/c.pdf", "b/d/e", "CON.txt", "x" * 250):
        write(folder / name)
    assert seen(folder) == {"a.txt", "b/c.pdf", "b/d/e", "CON.txt", "x" * 250}


def test_what_is_nobodys_document_is_left_out(folder: Path) -> None:
    write(folder / "a.txt")
    for name in (
        ".git/config",
        ".hidden",
        "node_modules/x/readme.md",
        "__pycache__/x.pyc",
        "~$letter.docx",
        "Thumbs.db",
    ):
        write(folder / name)
        assert is_ignored(folder / name, folder)
    assert seen(folder) == {"a.txt"}
    assert not is_ignored(folder / "a.txt", folder)


@POSIX
def test_pipes_sockets_and_links_out_of_the_folder_are_left_out(folder: Path) -> None:
    outside = write(folder.parent / "secret.txt")
    write(folder / "a.txt")
    (folder / "inside.txt").symlink_to(folder / "a.txt")
    (folder / "out.txt").symlink_to(outside)
    (folder / "nowhere.txt").symlink_to(folder / "missing")
    (folder / "up").symlink_to(folder.parent)
    (folder / "round").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket"))
        assert seen(folder) == {"a.txt", "inside.txt"}


@POSIX
def test_names_that_are_no_text_are_seen(folder: Path) -> None:
    for name in (b"caf\xe9.txt", b"two\nlines.txt", "é.txt".encode(), "e\u0301.txt".encode()):
        with open(os.path.join(os.fsencode(folder), name), "w") as file:
            file.write("x")
    assert len(seen(folder)) == 4


def test_a_single_file_is_a_root_as_well(folder: Path) -> None:
    file = write(folder / "a.txt")
    sight = look(file)
    assert sight is not None and list(sight.files) == [str(file)]
    assert look(folder / "missing") is None


def test_new_changed_and_gone_are_told_apart() -> None:
    old = {"/a": Stamp(1, 1), "/b": Stamp(1, 1), "/c": Stamp(1, 1)}
    sight = Sight("1", {"/a": Stamp(1, 1), "/b": Stamp(1, 2), "/d": Stamp(1, 1)})
    changes = compare(old, sight)
    assert (set(changes.new), set(changes.changed), changes.gone) == ({"/d"}, {"/b"}, {"/c"})
    assert not compare(old, Sight("1", dict(old)))


def test_what_lies_in_a_folder_that_cannot_be_opened_is_not_gone() -> None:
    old = {os.path.join("/r", "closed", "a"): Stamp(1, 1), os.path.join("/r", "b"): Stamp(1, 1)}
    sight = Sight("1", {}, [os.path.join("/r", "closed")])
    assert compare(old, sight).gone == {os.path.join("/r", "b")}


def test_a_missing_folder_is_lost_and_an_emptied_one_is_not() -> None:
    empty = Sight("here")
    assert is_lost(None, "here", 3)
    assert not is_lost(empty, "here", 3)
    assert not is_lost(Sight("there", {"/a": Stamp(1, 1)}), "here", 3)


def test_an_empty_folder_in_the_place_of_another_is_a_missing_disk() -> None:
    assert is_lost(Sight("mount point"), "disk", 1)
    assert not is_lost(Sight("mount point"), "disk", 0)


def test_many_files_do_not_go_all_at_once() -> None:
    assert is_lost(Sight("here"), "here", MANY + 1)
    assert not is_lost(Sight("here"), "here", MANY)


def test_a_place_is_under_a_folder_by_its_parts() -> None:
    folder = os.path.join(os.sep, "a", "b")
    assert is_under(folder, folder)
    assert is_under(os.path.join(folder, "c"), folder)
    assert not is_under(folder + "c", folder)
    assert is_under(folder, os.sep)


def test_the_digest_is_that_of_all_bytes(folder: Path) -> None:
    assert sha256_of(str(write(folder / "a", "abc"))).startswith("ba7816bf8f01cfea")


def test_folders_of_our_own_are_left_out_and_links_into_them(tmp_path: Path) -> None:
    for name in ("a.txt", "home/data/key", "home/cache/deep/b.txt", "home/c.txt", "home/data2/d"):
        write(tmp_path / "all" / name)
    (tmp_path / "all/key.txt").symlink_to(tmp_path / "all/home/data/key")
    (tmp_path / "all/a2.txt").symlink_to(tmp_path / "all/a.txt")
    own = tuple(os.path.realpath(tmp_path / "all/home" / name) for name in ("data", "cache"))
    (tmp_path / "link").symlink_to(tmp_path / "all")
    for place in ("all", "link"):
        sight = look(tmp_path / place, own)
        assert sight is not None
        assert {os.path.relpath(path, tmp_path / place) for path in sight.files} == {
            "a.txt",
            "a2.txt",
            "home/c.txt",
            "home/data2/d",
        }
    for place in ("all/home/data", "all/home/data/key", "all/key.txt", "link/home/cache/deep"):
        assert is_own(tmp_path / place, own)
        sight = look(tmp_path / place, own)
        assert sight is not None and not sight.files
