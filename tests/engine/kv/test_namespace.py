"""The namespace: other for every change of the model or its layout, and quickly known."""

import hashlib
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from engine.kv import namespace
from engine.kv.namespace import compute_digest, known_digest, namespace_of


@pytest.fixture
def model(home: Path) -> Path:
    path = home / "model.gguf"
    path.write_bytes(bytes(range(256)) * 20_000)
    return path


@pytest.fixture
def memo(home: Path) -> Path:
    return home / "digests.json"


def computed(model: Path, memo: Path) -> bytes | None:
    return compute_digest(model, memo, threading.Event())


def test_either_part_makes_another_namespace() -> None:
    one, other = bytes(32), bytes(31) + b"\1"
    spaces = {namespace_of(d, m) for d in (one, other) for m in (b"", b"f16", b"q8_0")}
    assert len(spaces) == 6
    assert {len(space) for space in spaces} == {32}


def test_it_is_the_hash_of_the_content_and_is_remembered(model: Path, memo: Path) -> None:
    assert known_digest(model, memo) is None
    digest = hashlib.sha256(model.read_bytes()).digest()
    assert computed(model, memo) == digest
    assert known_digest(model, memo) == digest


def test_a_remembered_one_is_known_without_reading(
    model: Path, memo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed(model, memo)
    monkeypatch.setattr(hashlib, "sha256", pytest.fail)
    assert known_digest(model, memo) is not None


def test_a_link_is_the_file_that_it_names(model: Path, memo: Path) -> None:
    link = model.with_name("link.gguf")
    link.symlink_to(model)
    assert known_digest(model, memo) is None
    assert known_digest(link, memo) == known_digest(model, memo)
    computed(link, memo)
    assert known_digest(model, memo) == known_digest(link, memo) is not None


def test_a_file_that_changed_in_any_way_is_unknown(model: Path, memo: Path) -> None:
    computed(model, memo)
    status = model.stat()
    os.utime(model, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert known_digest(model, memo) is None
    computed(model, memo)
    copy = model.with_name("copy")
    copy.write_bytes(model.read_bytes())
    os.utime(copy, ns=(status.st_atime_ns, model.stat().st_mtime_ns))
    copy.replace(model)
    assert known_digest(model, memo) is None
    computed(model, memo)
    model.unlink()
    assert known_digest(model, memo) is None


def test_a_file_that_changes_while_it_is_read_has_no_hash(
    model: Path, memo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = hashlib.sha256

    def growing() -> object:
        with open(model, "ab") as file:
            file.write(b"more")
        return sha256()

    identity = namespace._identity(model.stat())
    before = model.stat()
    # Not until the end of the test: deleting its folder asks the same.
    with monkeypatch.context() as patched:
        patched.setattr(hashlib, "sha256", growing)
        patched.setattr(os, "fstat", lambda _: os.stat_result(before))
        assert computed(model, memo) is None
    assert namespace._identity(model.stat()) != identity
    assert not memo.exists()


def test_it_can_be_cancelled(model: Path, memo: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    assert compute_digest(model, memo, cancelled) is None
    assert not memo.exists()


def test_models_that_are_gone_are_forgotten_and_others_are_not(model: Path, memo: Path) -> None:
    others = [model.with_name(name) for name in ("one.gguf", "two.gguf")]
    for other in others:
        other.write_bytes(b"x")
        computed(other, memo)
    others[0].unlink()
    computed(model, memo)
    assert set(json.loads(memo.read_text())) == {str(others[1].resolve()), str(model.resolve())}


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '{"a": 1}', "[" * 100_000, "\udcff"])
def test_a_damaged_memo_is_no_memo(model: Path, memo: Path, text: str) -> None:
    memo.write_bytes(text.encode(errors="surrogateescape"))
    assert known_digest(model, memo) is None
    assert computed(model, memo) == known_digest(model, memo) is not None


@pytest.mark.parametrize("entry", [None, [], {}, {"identity": 1, "sha256": "00"}])
def test_a_damaged_entry_is_no_entry(model: Path, memo: Path, entry: object) -> None:
    memo.write_text(json.dumps({str(model.resolve()): entry}))
    assert known_digest(model, memo) is None
    computed(model, memo)
    entries = json.loads(memo.read_text())
    entries[str(model.resolve())]["sha256"] = "00ff"
    memo.write_text(json.dumps(entries))
    assert known_digest(model, memo) is None


def test_a_memo_that_cannot_be_written_is_no_fault(model: Path, home: Path) -> None:
    memo = home / "no such folder" / "digests.json"
    assert computed(model, memo) == hashlib.sha256(model.read_bytes()).digest()


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_only_this_user_may_read_the_memo(model: Path, memo: Path) -> None:
    computed(model, memo)
    assert stat.S_IMODE(memo.stat().st_mode) == 0o600
    assert sorted(path.name for path in memo.parent.iterdir()) == ["digests.json", "model.gguf"]


def test_a_model_that_is_not_there_is_an_error(home: Path, memo: Path) -> None:
    with pytest.raises(FileNotFoundError):
        computed(home / "none", memo)
