"""What the processor drew, by counters that begin again when they are full."""

from pathlib import Path

from app.machine.energy import EnergyMeter


def zone(counters: Path, name: str, microjoules: int, whole: int = 1_000_000) -> None:
    (counters / name).mkdir(exist_ok=True)
    (counters / name / "energy_uj").write_text(f"{microjoules}\n")
    (counters / name / "max_energy_range_uj").write_text(f"{whole}\n")


def test_all_packages_count_and_their_parts_do_not(tmp_path: Path) -> None:
    for name in ("intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"):
        zone(tmp_path, name, 100)
    meter = EnergyMeter(tmp_path)
    zone(tmp_path, "intel-rapl:0", 500_100)
    zone(tmp_path, "intel-rapl:1", 250_100)
    zone(tmp_path, "intel-rapl:0:0", 400_100)
    assert meter.is_readable and meter.joules() == 0.75


def test_a_counter_that_began_again_is_understood(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", 900_000)
    meter = EnergyMeter(tmp_path)
    zone(tmp_path, "intel-rapl:0", 100_000)
    assert meter.joules() == 0.2


def test_a_machine_that_does_not_tell_gives_nothing(tmp_path: Path) -> None:
    meter = EnergyMeter(tmp_path / "missing")
    assert not meter.is_readable and meter.joules() is None
    zone(tmp_path, "intel-rapl:0", 1)
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("secret")
    assert EnergyMeter(tmp_path).joules() is None


def test_a_counter_that_went_away_gives_nothing(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", 1)
    meter = EnergyMeter(tmp_path)
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    assert meter.joules() is None
