"""`eval quant` on tiny random models: every form, beside the least quantised one."""

import argparse
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from app.eval import quant
from engine.backends.llama_cpp.quantize import quantize
from engine.errors import UsageError
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model

SMALL = ("--window", "64", "--windows", "2", "--threads", "1")


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
