"""No package tells where it was made."""

import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import traces


def test_a_place_is_replaced_by_one_of_the_same_length_and_the_same_last_name() -> None:
    for place in ("/home/someone/.pyenv/versions/3.11.7", "/home/python", "/häuser/python"):
        cleaned = traces.neutral(place)
        assert len(cleaned) == len(place.encode())
        assert Path(cleaned.decode()).resolve() == Path("/usr", Path(place).name).resolve()


def test_a_text_that_a_linker_keeps_inside_another_one_stays() -> None:
    """sys.version begins with the end of the folder that pyenv installs Python in."""
    place = "/home/someone/.pyenv/versions/3.11.7"
    cleaned = traces.without_traces(place.encode() + b"\0", [place])
    assert cleaned.endswith(b"3.11.7\0")


def test_what_stands_around_a_place_keeps_its_place() -> None:
    content = b"\x7fELF\0/home/someone/python/lib\0after"
    cleaned = traces.without_traces(content, ["/home/someone/python"])
    assert b"someone" not in cleaned
    assert cleaned.index(b"after") == content.index(b"after")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows' Python keeps no such facts")
def test_what_python_knows_of_its_compilation_loses_its_places(tmp_path: Path) -> None:
    folder = traces.clean_build_facts(tmp_path)
    (module,) = folder.glob("*.py")
    facts: dict[str, object] = {}
    exec(module.read_text(), facts)
    variables = facts["build_time_vars"]
    assert isinstance(variables, dict)
    assert variables["VERSION"] == sysconfig.get_config_var("VERSION")
    assert not any(place in module.read_text() for place in traces.own_places())


def test_a_trace_is_found_in_a_file_and_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "library.so").write_bytes(b"\x7fELF at /home/someone/python/lib\0")
    (tmp_path / "clean").write_bytes(b"nothing")
    assert traces.find_traces(tmp_path, ["/home/someone", "/nowhere"]) == [
        ("a/library.so", "/home/someone")
    ]


def test_a_trace_is_found_inside_a_wheel(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("library.so", b"\x7fELF at /home/someone/python/lib\0" * 100)
    found = traces.find_traces(tmp_path, ["/home/someone"])
    assert found == [("a.whl:library.so", "/home/someone")]


def test_only_libraries_are_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "own_places", lambda: ["/home/someone/python"])
    text, library = tmp_path / "text", tmp_path / "library.so"
    text.write_bytes(b"/home/someone/python")
    library.write_bytes(b"\x7fELF/home/someone/python")
    assert traces.clean_binaries(tmp_path) == [library]
    assert text.read_bytes() == b"/home/someone/python"
    assert b"someone" not in library.read_bytes()
