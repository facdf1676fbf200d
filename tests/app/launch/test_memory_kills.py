"""What the system counts and has left is read, and where it tells nothing nothing is known."""

from pathlib import Path

import pytest

from app.launch.memory_kills import is_memory_short, num_memory_kills

VMSTAT = "nr_free_pages 5\noom_kill 3\n"


def write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_the_own_group_is_asked_before_the_whole_machine(tmp_path: Path) -> None:
    write(tmp_path, "proc/vmstat", VMSTAT)
    assert num_memory_kills(tmp_path) == 3
    write(tmp_path, "proc/self/cgroup", "4:memory:/old\n0::/user.slice/app.scope\n")
    assert num_memory_kills(tmp_path) == 3
    events = "low 0\noom 9\noom_kill 1\noom_group_kill 0\n"
    write(tmp_path, "sys/fs/cgroup/user.slice/app.scope/memory.events", events)
    assert num_memory_kills(tmp_path) == 1


@pytest.mark.parametrize("text", [None, "", "oom_kill", "oom_kill many", "oom_killed 4", "\0"])
def test_without_a_counter_nothing_is_known(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        write(tmp_path, "proc/vmstat", text)
    assert num_memory_kills(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "is_short"),
    [
        ("MemTotal:  1000000 kB\nMemFree: 1 kB\nMemAvailable:  30000 kB\n", False),
        ("MemTotal:  1000000 kB\nMemFree: 1 kB\nMemAvailable:  19000 kB\n", True),
        ("MemTotal:  1000000 kB\n", False),
        ("", False),
    ],
)
def test_memory_is_short_when_hardly_anything_is_left(
    tmp_path: Path, text: str, is_short: bool
) -> None:
    write(tmp_path, "proc/meminfo", text)
    assert is_memory_short(tmp_path) is is_short
    assert not is_memory_short(tmp_path / "nowhere")
