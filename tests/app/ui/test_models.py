"""The words of the sheet of models."""

from typing import Any

import pytest

from app.models.connections import Connection
from app.models.fit import Fit, Verdict
from app.models.hub import FoundRepo
from app.models.way import Download, DownloadState
from app.ui.models import (
    connection_rows,
    download_row,
    fit_words,
    found_rows,
    parameters_in_words,
)


def download(**changes: Any) -> Download:
    facts: dict[str, Any] = {
        "name": "m",
        "repo": "a/b",
        "quantization": "Q8_0",
        "state": DownloadState.RUNNING,
        "num_bytes": 250,
        "total_bytes": 1000,
    }
    return Download(**facts | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "250 bytes of 1 kB"),
        ({"bytes_per_s": 50.0}, "250 bytes of 1 kB, 50 bytes/s, 15 s left"),
        ({"state": DownloadState.PAUSED}, "250 bytes of 1 kB, paused"),
        ({"state": DownloadState.FAILED, "message": "No."}, "250 bytes of 1 kB, stopped"),
    ],
)
def test_a_download_says_how_far_it_is(changes: dict[str, Any], words: str) -> None:
    row = download_row(download(**changes))
    assert (row["words"], row["share"]) == (words, 0.25)
    assert row["message"] == changes.get("message", "")


def test_a_size_that_is_not_known_yet_is_no_division_by_zero() -> None:
    assert download_row(download(total_bytes=0, num_bytes=0))["share"] == 0
    assert download_row(download(total_bytes=0))["share"] == 1


@pytest.mark.parametrize(
    ("seconds", "words"), [(1.26, "read in 1.3 s"), (42.0, "read in 42 s"), (600, "read in 10 min")]
)
def test_a_verdict_says_speed_where_it_is_known(seconds: float, words: str) -> None:
    facts: dict[str, Any] = {
        "verdict": Verdict.TIGHT,
        "why": "it takes 5 GB",
        "needed_bytes": 1,
        "available_bytes": 1,
        "context_tokens": 8192,
        "kv_type": "f16",
    }
    assert fit_words(Fit(**facts))["speed"] == ""
    told = fit_words(Fit(**facts, tokens_per_s=12.4, first_token_s=seconds))
    assert (told["verdict"], told["level"]) == ("tight", "tight")
    assert told["speed"].startswith("about 12 tokens/s") and told["speed"].endswith(words)


def test_names_connections_and_sizes_in_words() -> None:
    (row,) = found_rows([FoundRepo("a/b", 1200, 3, "", True)])
    assert row["facts"] == ["1,200 downloads", "no licence named", "for known people only"]
    (told,) = connection_rows([Connection(0.0, "a.example", "a search")])
    assert told["host"] == "a.example" and told["at"][:4] in ("1969", "1970")
    assert parameters_in_words(0.362) == "362 million parameters"
    assert parameters_in_words(8.19) == "8.19 billion parameters"
