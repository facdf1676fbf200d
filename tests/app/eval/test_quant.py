"""`eval quant` on tiny random models: every form, beside the least quantised one."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from app.eval import quant
from engine.backends.llama_cpp.quantize import quantize
from engine.errors import UsageError
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fakes_machine import RATES

ROOT = Path(__file__).parents[3]
SMALL = ("--window", "64", "--windows", "2", "--threads", "1")


@pytest.fixture(autouse=True)
def rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """How fast the machine is does not matter here."""
    monkeypatch.setattr(quant, "measure_rates", lambda: RATES)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf")


def evaluated(model: Path, *arguments: str) -> Any:
    parser = argparse.ArgumentParser()
    quant.add_arguments(parser)
    options = parser.parse_args(["--model", str(model), *SMALL, *arguments])
    return json.loads(quant.run(options).text().splitlines()[-1])


def test_fewer_bits_lose_more_and_the_reference_nothing(tiny: Path) -> None:
    result = evaluated(tiny, "--types", "Q8_0,Q2_K", "--kv-types", "q8_0,q4_0")
    assert result["eval"] == "quant" and result["reference"] == "F32"
    assert result["tokens"] == 2 * 31
    reference, q8, q2, kv8, kv4 = result["rows"]
    assert reference["kl"] == 0 and reference["same_top"] == 1 and reference["loses"] == 0
    assert 0 < q8["kl"] < q2["kl"]
    assert q8["mb"] < reference["mb"] and q8["weights"] == "Q8_0"
    assert 0 < kv8["kl"] < kv4["kl"] and kv4["kv_bytes"] < kv8["kv_bytes"] < q8["kv_bytes"]


def test_a_quantised_file_is_compared_with_itself_written_out(tiny: Path, tmp_path: Path) -> None:
    once = tmp_path / "once.gguf"
    quantize(tiny, once, "Q8_0", num_threads=1)
    parser = argparse.ArgumentParser()
    quant.add_arguments(parser)
    options = parser.parse_args(["--model", str(once), *SMALL, "--types", "Q4_0", "--kv-types", ""])
    report = quant.run(options)
    assert [row["form"] for row in report.rows] == ["F16 of Q8_0", "Q8_0 as it is", "Q4_0"]
    assert report.rows[1]["kl"] < report.rows[2]["kl"]
    (note,) = report.notes
    assert "what they lost when they were quantised is lost in the reference, too" in note


def test_nothing_is_left_and_a_picture_is_drawn(tiny: Path, tmp_path: Path) -> None:
    folder, picture = tmp_path / "work", tmp_path / "picture.svg"
    folder.mkdir()
    evaluated(
        tiny, "--types", "Q8_0", "--kv-types", "q8_0", "--folder", str(folder), "--picture",
        str(picture),
    )  # fmt: skip
    assert list(folder.iterdir()) == []
    assert ET.parse(picture).getroot().tag.endswith("svg")


def test_what_will_be_made_is_said_before(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated(tiny, "--types", "Q8_0,F32", "--kv-types", "q8_0", "--folder", str(tmp_path))
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith(f"Of tiny 1 file (Q8_0) will be made in {tmp_path}, with up to ")
    assert "Up to 128 tokens are read 3 times: about 0 s where nothing else is at work." in first


def test_a_disk_without_room_is_refused_before_anything_is_made(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    usage = shutil.disk_usage(folder)
    monkeypatch.setattr("shutil.disk_usage", lambda place: usage._replace(free=1_000_000))
    with pytest.raises(UsageError, match=r"1 MB are free where .* with --folder"):
        evaluated(tiny, "--folder", str(folder))
    with pytest.raises(UsageError, match="choose another --folder"):
        monkeypatch.undo()
        evaluated(tiny, "--folder", str(tmp_path / "nowhere"))
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_leaves_nothing_behind(tiny: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    command = [sys.executable, "-m", "app.cli", "eval", "quant", "--model", str(tiny)]
    command += ["--folder", str(folder), "--window", "1024", "--windows", "1000", "--types", "Q8_0"]
    text = tmp_path / "text.txt"
    text.write_text("abcde" * 400_000)
    child = subprocess.Popen(
        [*command, "--text", str(text)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # Whoever runs the tests in the background has the interrupt switched off.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert child.stderr is not None
    while b"reading with" not in (line := child.stderr.readline()):
        assert line, "it ended by itself"
    assert list(folder.iterdir())
    child.send_signal(getattr(signal, name))
    # On a busy machine a step of the model alone takes a while.
    assert child.wait(300) in (130, 143)
    child.stderr.close()
    assert list(folder.iterdir()) == []


def test_a_text_of_ones_own_is_read(tiny: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("abcde" * 20)
    short = evaluated(tiny, "--types", "Q8_0", "--kv-types", "", "--text", str(text))
    assert short["tokens"] == 31
    text.write_text("abc")
    with pytest.raises(UsageError, match="fewer than 64 tokens"):
        evaluated(tiny, "--types", "Q8_0", "--kv-types", "", "--text", str(text))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--types", "Q9"), "no type 'Q9'; the types are F32"),
        (("--kv-types", "q9"), "no type 'q9'; the types are f16"),
        (("--window", "8"), "says nothing"),
        (("--text", "/nowhere/text.txt"), "cannot be read as a text"),
    ],
)
def test_wrong_use_is_one_sentence(tiny: Path, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        evaluated(tiny, *arguments)
