"""`doctor`: looks at everything, says it, and stops at no fault."""

import errno
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.amounts import bytes_in_words
from app.commands.carry_out import carry_out
from app.commands.options import Options
from app.machine import examination
from app.machine.rates import Kept, keep
from app.machine.storage import MemoryFacts
from app.models.local import model_facts
from app.paths import Paths
from app.services import Services
from engine.adapter import Adapter
from engine.backends.llama_cpp import matrix_product
from engine.errors import HomeError, UsageError
from engine.kv import segment_index
from engine.kv.disk_folder import DiskFolder
from engine.kv.segment_file import segment_path
from engine.sampling_params import SamplingParams
from tests.app.commands.console import Recorder
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter
from tests.engine.kv.stored import NAMESPACE, key_of, num_bytes_in, write
from tests.fakes_machine import RATES
from tests.fakes_model import FakeEngine, FakeModelServices

NAMES = [
    *("machine", "processor", "graphics", "rates", "folders", "home", "history"),
    "documents",
    *("cache", "model", "disk", "memory", "answer"),
]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about how fast the machine is."""
    monkeypatch.setattr(examination, "known_rates", lambda paths, again: RATES)
    monkeypatch.setattr(matrix_product, "multiply_adds_per_second", lambda name, num_threads: 5e10)


async def examine(services: Services, **options: Any) -> Recorder:
    console = Recorder()
    await carry_out(services, Options(command="doctor", **options), console)
    return console


def check(result: Any, name: str) -> Any:
    (found,) = [each for each in result["checks"] if each["name"] == name]
    return found


async def test_every_check_is_there_and_a_fault_stops_none(
    services: FakeModelServices,
) -> None:
    result = (await examine(services, json=True)).json()
    assert [each["name"] for each in result["checks"]] == NAMES
    assert result["memory_bandwidth"] == RATES.read_bytes_per_s
    assert len(result["predictions"]) > 3
    assert check(result, "answer")["ok"]
    assert check(result, "history")["message"] == "0 conversations, the file is sound"


async def test_a_missing_model_has_a_remedy(services: FakeModelServices) -> None:
    missing = Services(services.paths, "/nowhere/model.gguf")
    result = (await examine(missing, json=True)).json()
    await missing.close()
    assert not result["ok"]
    model = check(result, "model")
    assert model["message"] == "There is no model file at /nowhere/model.gguf"
    assert model["remedy"] == "choose another model file or bring it again."
    assert not check(result, "memory")["ok"] and not check(result, "answer")["ok"]
    assert check(result, "history")["ok"]


async def test_a_home_that_cannot_be_made_is_a_failed_check_beside_the_others(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "place").write_text("a file")
    monkeypatch.setattr(examination, "measure_rates", lambda: RATES)

    def not_kept(paths: object, again: bool) -> object:
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(home / "place"))

    monkeypatch.setattr(examination, "known_rates", not_kept)
    paths = Paths.from_environment({"INGLENOOK_HOME": str(home / "place")})
    services = FakeModelServices(paths, FakeEngine(script="Good day"), makes_folders=False)
    result = (await examine(services, json=True)).json()
    await services.close()
    assert [each["name"] for each in result["checks"]] == NAMES
    folders = check(result, "folders")
    assert (folders["ok"], folders["remedy"]) == (
        False,
        "make it writable or choose another place with INGLENOOK_HOME.",
    )
    assert "cannot be made" in folders["message"]
    failed = [each["name"] for each in result["checks"] if not each["ok"]]
    assert {"rates", "folders", "home", "history"} <= set(failed)
    assert check(result, "answer")["ok"] and check(result, "model")["ok"]


async def test_a_picture_without_a_place_is_refused_before_anything_is_measured(
    services: FakeModelServices, home: Path
) -> None:
    console = Recorder()
    for file, words in ((home / "no" / "x.svg", "there is no folder"), (home, "it is a folder")):
        with pytest.raises(UsageError, match=words):
            await carry_out(services, Options(command="doctor", file=str(file)), console)
    assert console.out == "" and services.machine.findings is None


async def test_a_damaged_history_has_a_remedy(services: FakeModelServices) -> None:
    services.paths.database.write_bytes(b"no database" * 100)
    result = (await examine(services, json=True)).json()
    assert not check(result, "history")["ok"]
    assert check(result, "answer")["ok"]


@pytest.fixture
def kv(services: FakeModelServices) -> Path:
    """A cache with two pieces of conversations."""
    folder = services.paths.kv
    disk = DiskFolder(folder, NAMESPACE)
    disk.open()
    write(disk, 1, 2)
    disk.close(5)
    return folder


async def test_an_empty_or_sound_cache_is_well(services: FakeModelServices, kv: Path) -> None:
    num_bytes = num_bytes_in(kv)
    cache = check((await examine(services, json=True)).json(), "cache")
    assert cache["ok"]
    size = bytes_in_words(num_bytes)
    assert cache["message"] == f"2 pieces of conversations, {size}, all sound"
    shutil.rmtree(kv)
    cache = check((await examine(services, json=True)).json(), "cache")
    assert cache["ok"] and cache["message"].startswith("0 pieces")
    assert not kv.exists()


async def test_a_damaged_cache_is_repaired_when_it_is_asked_for(
    services: FakeModelServices, kv: Path
) -> None:
    file = segment_path(kv, NAMESPACE, key_of(2))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    cache = check((await examine(services, json=True)).json(), "cache")
    assert not cache["ok"] and file.exists()
    assert "besides these 1 damaged and 0 stray files" in cache["message"]
    assert "doctor --repair" in cache["remedy"]
    cache = check((await examine(services, json=True, repair=True)).json(), "cache")
    assert cache["ok"] and not file.exists()
    assert "1 damaged and 0 stray files were removed" in cache["message"]
    cache = check((await examine(services, json=True, repair=True)).json(), "cache")
    assert cache["message"].startswith("1 piece of conversations")
    assert cache["message"].endswith("all sound")


async def test_a_cache_in_use_is_counted_and_not_repaired(
    services: FakeModelServices, kv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_index, "BUSY_SECONDS", 0.05)
    disk = DiskFolder(kv, NAMESPACE)
    disk.open()
    cache = check((await examine(services, json=True)).json(), "cache")
    assert cache["ok"] and "in use now" in cache["message"]
    disk.close(5)


@pytest.mark.parametrize("as_json", [True, False])
async def test_a_repair_that_is_impossible_is_a_failure_after_the_whole_report(
    services: FakeModelServices, kv: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    monkeypatch.setattr(segment_index, "BUSY_SECONDS", 0.05)
    disk = DiskFolder(kv, NAMESPACE)
    disk.open()
    console = Recorder()
    with pytest.raises(HomeError) as raised:
        options = Options(command="doctor", repair=True, json=as_json)
        await carry_out(services, options, console)
    assert str(raised.value) == (
        f"Nothing was repaired, because the app uses {kv} now, and cannot be disturbed: quit the"
        " app, then repair again."
    )
    if as_json:
        assert not check(console.json(), "cache")["ok"]
    else:
        assert "billion parameters" in console.out
    disk.close(5)


async def test_a_cache_that_cannot_be_read_has_a_remedy(
    services: FakeModelServices, kv: Path
) -> None:
    shutil.rmtree(kv)
    (kv / "index.sqlite3").mkdir(parents=True)
    cache = check((await examine(services, json=True)).json(), "cache")
    assert not cache["ok"] and "cannot be read" in cache["message"]
    assert "delete this folder" in cache["remedy"]


async def test_one_of_a_kind_is_said_in_the_singular(services: FakeModelServices, kv: Path) -> None:
    await services.conversations.create("Alone")
    segment_path(kv, NAMESPACE, key_of(2)).unlink()
    result = (await examine(services, json=True)).json()
    assert check(result, "history")["message"].startswith("1 conversation, ")
    cache = check(result, "cache")["message"]
    assert cache.startswith("1 piece of ") and cache.endswith("0 damaged and 1 stray file")


async def test_amounts_are_in_the_units_of_the_page(services: FakeModelServices) -> None:
    result = (await examine(services, json=True)).json()
    said = " ".join(each["message"] for each in result["checks"])
    assert "MB" in said and "GB" in said and "iB" not in said


async def test_a_person_reads_the_same(services: FakeModelServices) -> None:
    missing = Services(services.paths, "/nowhere/model.gguf")
    out = (await examine(missing)).out
    await missing.close()
    for name in NAMES:
        assert name in out
    assert "NOT  model" in out and "->" in out and "GB/s" in out


async def test_what_will_run_is_said_with_what_it_costs(services: FakeModelServices) -> None:
    result = (await examine(services, json=True)).json()
    assert result["plan"]["backend"] == "fake" and result["plan"]["threads"] >= 1
    assert result["kv"]["bytes_per_token"] == 23_040
    assert result["costs"]["reading"]["num_tokens"] > 8
    assert result["costs"]["writing"]["processor_seconds"] >= 0
    assert [each["name"] for each in result["roofline"]["phases"]] == ["writing", "reading"]


async def test_the_rates_are_measured_again_when_that_is_asked_for(
    services: FakeModelServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def known(paths: Any, again: bool) -> Any:
        asked.append(again)
        return RATES

    monkeypatch.setattr(examination, "known_rates", known)
    await examine(services)
    await examine(services, again=True)
    assert asked == [False, True]


async def test_a_library_that_ends_the_process_is_not_loaded(
    services: FakeModelServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "how_the_library_ends", lambda: "an instruction")
    monkeypatch.setattr(examination, "look_at_processor", lambda: pytest.fail("it was loaded"))
    result = (await examine(services, json=True)).json()
    processor = check(result, "processor")
    assert not processor["ok"] and "make install" in processor["remedy"]
    for name in ("rates", "model", "answer"):
        assert not check(result, name)["ok"]
    assert check(result, "history")["ok"] and result["memory_bandwidth"] > 0


async def test_a_picture_is_drawn_into_a_file(services: FakeModelServices, tmp_path: Path) -> None:
    file = tmp_path / "picture.svg"
    await examine(services, file=str(file))
    assert file.read_text().startswith("<svg") and "of what is possible" in file.read_text()


async def test_a_picture_without_a_place_or_a_model_is_one_sentence(
    services: FakeModelServices, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="choose another place"):
        await examine(services, file=str(tmp_path))
    missing = Services(services.paths, "/nowhere/model.gguf")
    with pytest.raises(UsageError, match="no model could be measured"):
        await examine(missing, file=str(tmp_path / "picture.svg"))
    await missing.close()


async def test_a_report_has_nothing_of_a_conversation_and_no_secret(
    services: FakeModelServices,
) -> None:
    conversation = await services.conversations.create("A secret garden")
    await services.conversations.begin_turn(conversation.conversation_id, "Where do roses grow?")
    key = services.api_key
    report = (await examine(services, report=True)).out
    for secret in ("secret garden", "roses", key, str(services.paths.data), str(Path.home())):
        assert secret not in report
    assert "1 conversation, the file is sound" in report and "<DATA>" in report


async def test_a_self_test_has_a_verdict_for_each_part(services: FakeModelServices) -> None:
    result = (await examine(services, json=True, self_test=True)).json()
    verdicts = {each["name"]: each["ok"] for each in result["self_test"]}
    assert list(verdicts) == ["store", "write", "read", "form", "remember"]
    # The fake writes what it likes, and keeps nothing outside its cells.
    assert verdicts["store"] and verdicts["write"]
    assert not verdicts["form"] and not verdicts["remember"] and not result["ok"]
    out = (await examine(services, self_test=True)).out
    assert "Self-test" in out and "NOT  form" in out


@pytest.mark.parametrize(
    ("spare", "words"),
    [
        (3000 * 23_040, "a context of at most 2,816 tokens in the settings"),
        (-1, "a smaller model: this one does not fit with any context"),
    ],
)
async def test_too_little_memory_has_a_remedy_that_would_do(
    services: FakeModelServices, monkeypatch: pytest.MonkeyPatch, spare: int, words: str
) -> None:
    facts = model_facts(services.engine_config)
    free = facts.memory_bytes - 8192 * facts.kv_bytes_per_token + spare
    short = MemoryFacts(total=2 * free, available=free, swap_total=0, swap_used=0)
    monkeypatch.setattr(examination, "look_at_memory", lambda: short)
    memory = check((await examine(services, json=True)).json(), "memory")
    assert not memory["ok"] and words in memory["remedy"]


async def test_what_was_chosen_for_one_model_counts(services: FakeModelServices) -> None:
    alone = (await examine(services, json=True)).json()
    pirate = write_tiny_adapter(services.paths.models / "pirate.gguf")
    own = {"context_tokens": 2048, "kv_type": "q8_0"}
    path = services.model_path
    chosen = replace(services.settings, by_model={str(path): own})
    services.save_settings(chosen.with_adapters(path, [Adapter(pirate)]))
    await services.model.reload()
    changed = (await examine(services, json=True)).json()
    assert (changed["plan"]["context_tokens"], changed["plan"]["kv_type"]) == (2048, "q8_0")
    assert changed["kv"]["context_tokens"] == 2048
    assert check(changed, "model")["message"].endswith(", with pirate")
    assert check(changed, "memory")["message"] != check(alone, "memory")["message"]
    config = services.engine_config
    without = model_facts(replace(config, adapters=())).memory_bytes
    assert model_facts(config).memory_bytes >= without + pirate.stat().st_size // 2


async def test_figures_beside_somebody_elses_answer_say_so(services: FakeModelServices) -> None:
    alone = check((await examine(services, json=True)).json(), "answer")["message"]
    engine = services.engine
    engine.script = None
    other = engine.submit([1, 2], SamplingParams())
    engine.script = "Good day"
    beside = check((await examine(services, json=True)).json(), "answer")["message"]
    other.end()
    assert "meanwhile" in beside and "meanwhile" not in alone


async def test_rates_that_were_measured_beside_others_say_so(services: FakeModelServices) -> None:
    alone = check((await examine(services, json=True)).json(), "rates")["message"]
    keep(services.paths, Kept(RATES, is_busy=True, at=0.0))
    beside = check((await examine(services, json=True)).json(), "rates")["message"]
    assert "meanwhile" not in alone and "other programs were at work meanwhile" in beside
