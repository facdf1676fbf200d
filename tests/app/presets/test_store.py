"""Saved presets: by name, in one file that is never lost."""

import json
import stat
from pathlib import Path

import pytest

from app.presets.preset import Preset
from app.presets.store import MOST_PRESETS, Presets
from engine.errors import HomeError, UsageError

HOT = Preset(name="Hot", sampling={"temperature": 1.5})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "presets.json"


@pytest.fixture
def presets(path: Path) -> Presets:
    return Presets(path)


def test_a_saved_preset_is_there_after_a_restart(presets: Presets, path: Path) -> None:
    presets.save(HOT)
    assert Presets(path).saved() == (HOT,)
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_capitals_make_no_other_name(presets: Presets) -> None:
    presets.save(HOT)
    assert presets.get("hOT") == HOT
    with pytest.raises(UsageError, match="a preset 'Hot' already"):
        presets.save(Preset(name="HOT"))
    presets.save(Preset(name="HOT"), replaces=True)
    assert presets.saved() == (Preset(name="HOT"),)


@pytest.mark.parametrize("name", ["precise", "Balanced", "model's own", " Creative "])
def test_given_ones_can_be_neither_replaced_nor_changed(presets: Presets, name: str) -> None:
    with pytest.raises(UsageError, match="of the app or the model"):
        presets.save(Preset(name=name), replaces=True)
    presets.save(HOT)
    with pytest.raises(UsageError, match="of the app or the model"):
        presets.rename("Hot", name)
    for change in (presets.delete, lambda name: presets.rename(name, "New")):
        with pytest.raises(UsageError):
            change(name.strip())
    assert presets.saved() == (HOT,)


def test_one_from_a_file_goes_beside_one_of_the_same_name(presets: Presets) -> None:
    assert [presets.add(HOT).name for _ in range(3)] == ["Hot", "Hot 2", "Hot 3"]
    assert presets.add(Preset(name="Precise")).name == "Precise 2"
    assert presets.add(Preset(name="Model's own")).name == "Model's own 2"
    long = "x" * 60
    assert [presets.add(Preset(name=long)).name for _ in range(2)] == [long, "x" * 58 + " 2"]


def test_a_renamed_one_keeps_what_it_holds(presets: Presets) -> None:
    presets.save(HOT)
    presets.save(Preset(name="Cold"))
    with pytest.raises(UsageError, match="already"):
        presets.rename("Hot", "cold")
    presets.rename("Hot", "HOT")
    presets.rename("HOT", "Warm")
    assert presets.get("Warm").sampling == HOT.sampling
    with pytest.raises(UsageError, match="no saved preset 'Hot' any more"):
        presets.rename("Hot", "Other")


def test_a_deleted_one_is_gone(presets: Presets) -> None:
    presets.save(HOT)
    presets.delete("hot")
    assert presets.saved() == ()
    with pytest.raises(UsageError, match="any more"):
        presets.delete("Hot")
    with pytest.raises(UsageError, match="there are Precise, Balanced, Creative"):
        presets.get("Hot")


def test_a_model_that_recommends_nothing_says_so(presets: Presets) -> None:
    with pytest.raises(UsageError, match="this model recommends nothing"):
        presets.get("Model's own")


def test_what_the_model_recommends_is_offered(path: Path) -> None:
    presets = Presets(path, lambda: {"temp": "0.6"})
    assert presets.get("model's own").params.temperature == 0.6


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"presets": 3}', '{"presets": [{"name": "x"}]}', "\0"]
)
def test_a_damaged_file_is_said_and_never_overwritten(
    presets: Presets, path: Path, text: str
) -> None:
    path.write_text(text)
    assert presets.get("precise").params.is_greedy
    for action in (presets.saved, lambda: presets.save(HOT), lambda: presets.get("hot")):
        with pytest.raises(HomeError, match="correct the file, or move it away"):
            action()
    assert path.read_text() == text


def test_there_is_an_end_to_them(presets: Presets, path: Path) -> None:
    many = [Preset(name=f"P{n}").as_json() for n in range(MOST_PRESETS)]
    path.write_text(json.dumps({"presets": many}))
    with pytest.raises(UsageError, match="200 saved presets"):
        presets.save(HOT)
    presets.save(Preset(name="P7", sampling={"top_k": 1}), replaces=True)


def test_a_preset_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="could not be saved"):
        Presets(tmp_path / "missing" / "presets.json").save(HOT)


def test_a_file_that_was_changed_by_hand_is_read_again(presets: Presets, path: Path) -> None:
    presets.save(HOT)
    assert presets.saved() == (HOT,)
    path.write_text(path.read_text().replace("Hot", "Warm"))
    assert [each.name for each in presets.saved()] == ["Warm"]
    path.write_text("")
    with pytest.raises(HomeError):
        presets.saved()
