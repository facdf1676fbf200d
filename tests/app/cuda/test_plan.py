"""What an installation takes is said with figures, and what is unknown is said to be."""

from pathlib import Path

import pytest

from app.cuda.plan import UNPACKED, Plan, WheelFile, file_of
from engine.errors import InstallationFailed

GB = 10**9
HERE = WheelFile(name="inglenook", version="0.1.0", url="file:///w/a%20b.whl", num_bytes=10**6)
TORCH = WheelFile(
    name="torch", version="2.99.0", url="https://example.org/torch.whl", num_bytes=2 * GB
)


def test_what_is_here_is_not_fetched_and_still_takes_room() -> None:
    plan = Plan(python="3.11.7", files=(HERE, TORCH), free_bytes=5 * GB)
    assert plan.fetched_bytes == 2 * GB
    assert plan.installed_bytes == round(UNPACKED * (2 * GB + 10**6))
    assert plan.is_too_large and plan.torch == "2.99.0"
    first, largest, room = plan.lines()
    assert first == "it fetches 1 file with 2 GB; 1 file of 2 are here"
    assert largest.startswith("the largest: torch 2.99.0 (2 GB), inglenook 0.1.0")
    assert "5 GB are free" in room


def test_an_unknown_size_is_said() -> None:
    unknown = WheelFile(name="numpy", version="2", url="https://example.org/n.whl")
    plan = Plan(python="3.11.7", files=(TORCH, unknown), free_bytes=50 * GB)
    assert plan.num_unknown == 1 and not plan.is_too_large
    assert "and 1 file of unknown size" in plan.lines()[0]
    assert plan.as_json()["files"][1] == {"name": "numpy", "version": "2", "bytes": None}


def test_a_file_is_asked_for_with_its_checksum() -> None:
    item = {
        "download_info": {
            "url": "https://e.org/T.whl",
            "archive_info": {"hashes": {"sha256": "ab"}},
        },
        "metadata": {"name": "Torch", "version": "3"},
    }
    file = file_of(item)
    assert file.requirement == "torch @ https://e.org/T.whl#sha256=ab" and not file.is_here
    assert HERE.is_here and HERE.path == Path("/w/a b.whl")


@pytest.mark.parametrize("item", [{}, {"download_info": {}, "metadata": {}}, {"download_info": 3}])
def test_a_report_that_is_none_is_a_sentence(item: dict[str, object]) -> None:
    with pytest.raises(InstallationFailed, match="newer Python"):
        file_of(item)
