"""The command line: what is understood, what is refused, and the code at the end."""

import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database as Tables

from app import cli
from app.cli import main
from app.commands.arguments import make_parser
from app.commands.docs import BROKEN_OFF
from app.commands.given import options_of
from app.commands.options import Options
from app.documents.holding import LIBRARY
from app.history.conversations import Conversations
from app.history.database import Database
from app.owner import HomeLock
from app.paths import Paths
from app.run import Run
from app.version import VERSION
from engine.errors import DiskFull, HomeError, UsageError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def in_this_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGLENOOK_HOME", str(home))


def parse(*arguments: str) -> Options:
    return options_of(make_parser().parse_args(arguments))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", ""), "path of a file or a folder is empty"),
        (("add", "a.txt", " "), "path of a file or a folder is empty"),
        (("status", ""), "path of a file or a folder is empty"),
        (("add", "a.txt", "--collection", ""), "name of the collection is empty"),
        (("search", "words", "--collection", " "), "name of the collection is empty"),
        (("search", " "), "nothing to look for"),
        (("ask", ""), "nothing to answer"),
    ],
)
def test_nothing_at_all_is_no_place_and_no_collection(
    arguments: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        parse("docs", *arguments)


def test_breaking_off_says_when_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: Options) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run_command", interrupted)
    assert main(["docs", "add", "papers"]) == 130
    assert capsys.readouterr().err == f"{BROKEN_OFF}\n"
    assert main(["docs", "list"]) == 130
    assert capsys.readouterr().err == ""


async def store(paths: Paths, title: str) -> str:
    with Database(paths.database) as database:
        return (await Conversations(database).create(title)).conversation_id


def test_the_version_is_the_one_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"Inglenook {VERSION}\n"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "app.version.VERSION"}


def test_options_become_values() -> None:
    options = parse("generate", "Hi", "--top-k", "5", "--temperature", "0", "--stop", "a", "--json")
    assert options == Options(
        command="generate",
        text="Hi",
        json=True,
        sampling={"top_k": 5, "temperature": 0.0, "stop": ["a"]},
    )
    assert parse("generate", "Hi", "--seed", "0").sampling == {"seed": 0}
    assert parse("chats", "delete", "a", "b", "--yes").ids == ("a", "b")


def test_files_travel_with_their_whole_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = parse("docs", "add", "papers", "../b.pdf", "--collection", "work")
    assert options.files == (str(tmp_path / "papers"), str(tmp_path.parent / "b.pdf"))
    assert (options.collection, options.password) == ("work", "")
    assert parse("docs", "status").files == ()
    assert Options.from_json({"command": "docs", "files": ["/a"]}).files == ("/a",)


def test_an_embedding_model_is_named_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse("docs", "embedder").text == ""
    assert parse("docs", "embedder", "multilingual").text == "multilingual"
    options = parse("docs", "embedder", "e5.gguf", "--languages", "de,EN", "--query-prefix", "q: ")
    assert options.text == str(tmp_path / "e5.gguf")
    assert (options.languages, options.query_prefix) == (("de", "en"), "q: ")
    assert options.passage_prefix is None
    assert Options.from_json({"command": "docs", "languages": ["de"]}).languages == ("de",)


def test_a_password_is_read_and_never_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = io.BytesIO(b"p\xc3\xa4ss word\nmore")

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr(sys, "stdin", Input())
    options = parse("docs", "add", "a.pdf", "--password")
    assert options.password == "päss word"
    assert "päss" not in repr(options)
    Input.buffer = io.BytesIO(b"\n")
    with pytest.raises(UsageError, match="no password"):
        parse("docs", "add", "a.pdf", "--password")


def test_a_draft_model_is_taken_only_where_something_is_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.gguf").touch()
    options = parse("generate", "Hi", "--no-reproducible", "--draft-model", "small.gguf")
    assert options.draft_model == str(tmp_path / "small.gguf")
    with pytest.raises(UsageError, match="needs --no-reproducible"):
        parse("generate", "Hi", "--draft-model", "small.gguf")


def test_an_adapter_is_a_file_or_a_name_with_a_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pirate.gguf").touch()
    options = parse("generate", "Hi", "--lora", "pirate.gguf:0.8", "--lora", "sailor")
    assert options.adapters == ((str(tmp_path / "pirate.gguf"), 0.8), ("sailor", 1.0))


@pytest.mark.parametrize(
    ("given", "kind", "grammar"),
    [
        (["--schema", "a.json"], "json_schema", "{}"),
        (["--grammar", "a.gbnf"], "gbnf", 'root ::= "a"'),
        (["--grammar", "a.lark"], "lark", 'start: "a"'),
        (["--regex", "a+"], "regex", "a+"),
        (["--choice", "yes", "--choice", "no"], "choice", '["yes", "no"]'),
    ],
)
def test_the_form_of_an_answer_travels_as_its_text(
    given: list[str], kind: str, grammar: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"a.json": "{}", "a.gbnf": 'root ::= "a"', "a.lark": 'start: "a"'}.items():
        Path(name).write_text(text)
    options = parse("generate", "Hi", *given)
    assert (options.grammar_kind, options.grammar) == (kind, grammar)


def test_a_ready_form_goes_by_its_name_and_ones_own_come_first() -> None:
    options = parse("generate", "Hi", "--grammar", "rating")
    assert (options.grammar_kind, options.grammar) == ("choice", '["1", "2", "3", "4", "5"]')
    own = Paths.from_environment().grammars
    own.mkdir(parents=True)
    (own / "rating.toml").write_text("title = 'Mine'\nkind = 'regex'\nsource = '[1-3]'\n")
    options = parse("generate", "Hi", "--grammar", "rating")
    assert (options.grammar_kind, options.grammar) == ("regex", "[1-3]")
    (own / "bad.toml").write_text("title = ")
    with pytest.raises(UsageError, match="bad.toml"):
        parse("generate", "Hi", "--grammar", "rating")


@pytest.mark.parametrize(
    "form", [[], ["--regex", "a"], ["--choice", "a"], ["--grammar", "json"], ["--grammar", "x"]]
)
def test_only_a_schema_can_be_approximate(
    form: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "Hi", "--approximate", *form]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--approximate" in line and "--schema" in line


def test_a_form_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="'ratings'; the forms are arithmetic, .*rating"):
        parse("generate", "Hi", "--grammar", "ratings")


@pytest.mark.parametrize("content", [None, b"\xff\xfe{"])
def test_a_form_that_cannot_be_read_is_one_sentence(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("a.json").write_bytes(content)
    with pytest.raises(UsageError, match="a.json"):
        parse("generate", "Hi", "--schema", "a.json")


def test_the_doctor_repairs_only_when_it_is_asked_to() -> None:
    assert not parse("doctor").repair
    assert parse("doctor", "--repair") == Options(command="doctor", repair=True)


def test_files_become_absolute(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    (home / "m.gguf").touch()
    assert parse("chats", "import", "x.json").file == str(Path.cwd() / "x.json")
    assert parse("generate", "Hi", "--model", "m.gguf").model == str(Path.cwd() / "m.gguf")
    assert parse("generate", "Hi", "--model", "starter").model == "starter"
    assert parse("generate", "Hi", "--model", "~no-such-user/x").model == "~no-such-user/x"


def standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="ascii"))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_standard_input_is_utf8_whatever_the_terminal_says(
    monkeypatch: pytest.MonkeyPatch, mark: bytes
) -> None:
    standard_input(monkeypatch, mark + "Grüße 🙂\r\nZwei".encode())
    assert parse("generate", "-").text == "Grüße 🙂\nZwei"


def test_a_standard_input_of_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    standard_input(monkeypatch, b"\xff\xfe")
    with pytest.raises(UsageError, match="not a text in UTF-8"):
        parse("generate", "-")


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    with pytest.raises(UsageError, match="nothing to answer"):
        parse("generate", text)
    standard_input(monkeypatch, text.encode())
    with pytest.raises(UsageError, match="nothing to answer"):
        parse("generate", "-")


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["generate"],
        ["generate", "Hi", "--top-k", "many"],
        ["chats"],
        ["chats", "fly"],
        ["chats", "show"],
        ["models", "download"],
        ["run", "--port", "0"],
        ["run", "--port", "99999"],
        ["run", "--share"],
        ["--no-such-option"],
        ["serve"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_one_line_and_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.count("\n") == 1 and "--help" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["generate", "Hi", "--temperature", "99"], "temperature must be between"),
        (["generate", "Hi", "--temperature", "nan"], "temperature must be between"),
        (["generate", "Hi", "--stop", ""], "must not be empty"),
        (["generate", " "], "nothing to answer"),
        (["generate", "Hi", "--lora", "a.gguf:5"], "a.gguf must be between -4 and 4, got 5"),
        (["run", "--lora", "a.gguf:-9"], "a.gguf must be between -4 and 4, got -9"),
        (["generate", "Hi", "--lora", "a", "--lora", "b", "--lora", "c"], "At most 2 adapters"),
        (["run", "--host", "0.0.0.0"], "listens on this machine only"),
        (["chats", "delete", "x"], "--yes"),
        (["chats", "import", ""], "path of the file is empty: give one"),
        (["models", "add", ""], "path of the file is empty: give one"),
        (["models", "add", "  ", "--copy"], "path of the file is empty: give one"),
        (["models", "use", ""], "name of the model is empty: give one of"),
        (["models", "remove", "", "--yes"], "name of the model is empty: give one of"),
    ],
)
def test_wrong_values_are_one_sentence_and_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert words in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chats", "show", "nobody"], "There is no conversation nobody"),
        (["chats", "import", "/nowhere.json"], "/nowhere.json cannot be read"),
        (["models", "info", "/nowhere.gguf"], "There is no model file at /nowhere.gguf"),
        (["generate", "Hi", "--model", "/nowhere.gguf"], "There is no model file"),
        (["generate", "Hi", "--model", "/"], "/ is not a file"),
        (["generate", "Hi", "--lora", "/nowhere.gguf"], "There is no adapter at /nowhere.gguf"),
        (["models", "info", "/a\x1b]0;title\x07b"], "no model file at /a\ufffd]0;title\ufffdb:"),
    ],
)
def test_a_failure_is_one_sentence_and_code_1(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert words in error


def test_a_fault_of_the_system_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: Options) -> int:
        raise OSError(28, "No space left on device", "/home/x")

    monkeypatch.setattr(cli, "run_command", full)
    assert main(["chats", "list"]) == 1
    assert capsys.readouterr().err == "This could not be done: No space left on device (/home/x).\n"


async def test_the_history_is_read_without_an_app(
    paths: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    one = await store(paths, "Größe 🙂")
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "chats", "list", "--json"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    (chat,) = json.loads(done.stdout)["chats"]
    assert (chat["id"], chat["title"]) == (one, "Größe 🙂")


def test_commands_at_once_wait_for_each_other() -> None:
    commands = [
        subprocess.Popen(
            [sys.executable, "-m", "app.cli", "chats", "list", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    for command in commands:
        out, error = command.communicate(timeout=60)
        assert (command.returncode, json.loads(out), error) == (0, {"chats": []}, b"")


def test_a_home_that_is_held_and_does_not_answer_is_one_sentence(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "COMMAND_PATIENCE_S", 0)
    with HomeLock(paths) as lock:
        lock.try_acquire()
        assert main(["chats", "list"]) == 1
    assert "does not answer" in capsys.readouterr().err


def test_a_command_that_waits_for_another_one_says_so(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "QUIET_S", 0)
    lock = HomeLock(paths)
    lock.try_acquire()
    own = cli.own_or_find

    def freed(*given: Any) -> Any:
        # The other command ends while this one waits.
        said = capsys.readouterr().err
        if "this command waits" in said:
            lock.release()
        return own(*given)

    monkeypatch.setattr(cli, "own_or_find", freed)
    assert main(["docs", "remove", str(paths.data / "none.txt")]) == 2
    assert not lock._lock.is_locked
    assert main(["docs", "remove", str(paths.data / "none.txt")]) == 2
    assert "waits" not in capsys.readouterr().err


def test_files_are_listed_and_searched_while_another_command_reads_some(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "COMMAND_PATIENCE_S", 0)
    note = paths.data.parent / "note.txt"
    note.write_text("The river Inn rises in Switzerland.")
    assert main(["docs", "add", str(note)]) == 0
    with HomeLock(paths) as lock, Database(paths.documents, LIBRARY) as library:
        lock.try_acquire()

        def meanwhile(tables: Tables) -> None:
            tables.execute("update file set message = 'read now'")
            for arguments in (["status"], ["list"], ["search", "Inn"]):
                assert main(["docs", *arguments]) == 0
            assert main(["docs", "remove", str(note)]) == 1

        library.run_sync(meanwhile)
    said = capsys.readouterr()
    assert "1 file: 1 indexed." in said.out and "rises in Switzerland" in said.out
    assert "read now" not in said.out and "does not answer" in said.err


def test_on_a_full_disk_files_are_only_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    async def run_here(*_: Any, only_reads: bool = False) -> int:
        asked.append(only_reads)
        if not only_reads:
            raise DiskFull("There is no room left.")
        return 0

    monkeypatch.setattr(cli, "run_here", run_here)
    assert main(["docs", "search", "Inn"]) == 0
    assert main(["docs", "remove", "a.txt"]) == 1
    assert asked == [False, True, False]


def test_without_a_command_the_app_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Run] = []

    def run(one: Run) -> int:
        asked.append(one)
        raise HomeError("Not today.")

    monkeypatch.setattr("app.run.run", run)
    assert main([]) == 1
    assert main(["--no-open", "--port", "8000", "--safe"]) == 1
    assert main(["run", "--lora", "pirate:0.5"]) == 1
    assert asked == [
        Run(),
        Run(port=8000, opens_browser=False, is_safe=True),
        Run(adapters=(("pirate", 0.5),)),
    ]
    assert asked[-1].names_models


def test_help_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["--help"])
    assert raised.value.code == 0
    assert "generate" in capsys.readouterr().out


WHAT_IS_LOADED = """
import sys
from app.cli import main
code = main({arguments!r})
heavy = {{"gradio", "fastapi", "uvicorn", "llama_cpp", "torch", "huggingface_hub", "starlette"}}
print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["chats", "list"], []),
        # It says of each file whether this build of llama.cpp can run it.
        (["models", "list", "--json"], ["llama_cpp"]),
    ],
)
def test_a_small_command_loads_nothing_large(arguments: list[str], needed: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WHAT_IS_LOADED.format(arguments=arguments)],
        capture_output=True,
        text=True,
    )
    assert done.stderr.splitlines()[-1] == f"0 {needed}"


@pytest.mark.parametrize(("given", "is_reproducible"), [([], True), (["--no-reproducible"], False)])
def test_an_answer_is_reproducible_unless_that_is_not_wanted(
    given: list[str], is_reproducible: bool
) -> None:
    parsed = make_parser().parse_args(["generate", "Hello", *given])
    assert options_of(parsed).reproducible is is_reproducible
