"""Graphics processors, as each vendor's own program or the system's files tell of them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.machine.gpu import Ask, Gpu, ask_program, look_at_gpus, why_not_used

NVIDIA = "NVIDIA GeForce RTX 3060, 12288, 550.54.14\nNVIDIA H200, [N/A], 580.1\n"
AMD = json.dumps(
    {
        "card0": {"Card Series": "Radeon RX 7900", "VRAM Total Memory (B)": "25753026560"},
        "system": {"Driver version": "6.7.0"},
    }
)
APPLE = json.dumps(
    {
        "SPDisplaysDataType": [
            {
                "sppci_model": "Apple M3",
                "spdisplays_vendor": "sppci_vendor_Apple",
                "spdisplays_mtlgpufamilysupport": "spdisplays_metal3",
            }
        ]
    }
)


def answering(answers: Mapping[str, str]) -> Ask:
    def ask(command: Sequence[str]) -> str:
        return answers.get(command[0], "")

    return ask


def card(devices: Path, name: str, vendor: str, driver: str = "", vram: str = "") -> None:
    device = devices / name / "device"
    device.mkdir(parents=True)
    (device / "vendor").write_text(f"{vendor}\n")
    if driver:
        (devices / "drivers" / driver).mkdir(parents=True)
        (device / "driver").symlink_to(devices / "drivers" / driver)
    if vram:
        (device / "mem_info_vram_total").write_text(vram)


def test_nvidias_program_is_believed(tmp_path: Path) -> None:
    card(tmp_path, "card0", "0x10de", "nvidia")
    gpus = look_at_gpus(answering({"nvidia-smi": NVIDIA}), tmp_path, "Linux")
    assert gpus == [
        Gpu(
            name="NVIDIA GeForce RTX 3060",
            maker="NVIDIA",
            memory_bytes=12288 * 2**20,
            driver="550.54.14",
        ),
        Gpu(name="NVIDIA H200", maker="NVIDIA", memory_bytes=None, driver="580.1"),
    ]


def test_amds_program_is_believed(tmp_path: Path) -> None:
    (gpu,) = look_at_gpus(answering({"rocm-smi": AMD}), tmp_path, "Linux")
    assert gpu == Gpu(name="Radeon RX 7900", maker="AMD", memory_bytes=25753026560, driver="6.7.0")


def test_apples_program_is_believed(tmp_path: Path) -> None:
    (gpu,) = look_at_gpus(answering({"system_profiler": APPLE}), tmp_path, "Darwin")
    assert (gpu.name, gpu.maker) == ("Apple M3", "Apple") and "metal3" in gpu.driver


def test_without_a_program_the_files_tell(tmp_path: Path) -> None:
    card(tmp_path, "card0", "0x10de")
    card(tmp_path, "card1", "0x1002", "amdgpu", "8589934592")
    card(tmp_path, "card2", "0x1234")
    (tmp_path / "card1-HDMI-A-1").mkdir()
    gpus = look_at_gpus(answering({}), tmp_path, "Linux")
    assert gpus == [
        Gpu(name="NVIDIA graphics", maker="NVIDIA"),
        Gpu(name="AMD graphics", maker="AMD", memory_bytes=2**33, driver="amdgpu"),
    ]


def test_nonsense_is_no_graphics_processor(tmp_path: Path) -> None:
    nonsense = {"nvidia-smi": "NVIDIA-SMI has failed", "rocm-smi": "[1]", "system_profiler": "{}"}
    assert look_at_gpus(answering(nonsense), tmp_path, "Linux") == []
    assert look_at_gpus(answering(nonsense), tmp_path, "Darwin") == []
    assert look_at_gpus(answering({"rocm-smi": "no JSON"}), tmp_path, "Linux") == []


def test_a_program_that_is_missing_or_fails_says_nothing() -> None:
    assert ask_program(["there-is-no-such-program"]) == ""
    assert ask_program(["false"]) == ""


def test_it_is_said_why_one_is_not_used_and_that_its_driver_is_missing() -> None:
    assert why_not_used([]) == ""
    with_driver = why_not_used([Gpu(name="RTX", maker="NVIDIA", driver="550")])
    assert with_driver.startswith("RTX is not used: this build of llama.cpp")
    assert "RTX has no driver that answers" in why_not_used([Gpu(name="RTX", maker="NVIDIA")])
