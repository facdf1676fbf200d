"""How much energy the processor draws, where the machine tells: Intel's and AMD's RAPL counters.

Linux shows them in /sys/class/powercap, often to its administrator only. They count all that runs
on the processor, not this app alone.
"""

from dataclasses import dataclass
from pathlib import Path

COUNTERS = Path("/sys/class/powercap")
JOULES_PER_WATT_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class _Reading:
    microjoules: int
    # The counter begins again from 0 after this.
    range_microjoules: int


class EnergyMeter:
    """Joules of all processor packages since it was made. Owned by whoever made it."""

    def __init__(self, counters: Path = COUNTERS) -> None:
        self._counters = counters
        self._before = self._read()

    @property
    def is_readable(self) -> bool:
        return bool(self._before)

    def joules(self) -> float | None:
        """None: nothing here tells. What takes longer than a counter's way round is too little."""
        after = self._read()
        if not self._before or after.keys() != self._before.keys():
            return None
        total = 0
        for name, reading in after.items():
            drawn = reading.microjoules - self._before[name].microjoules
            total += drawn if drawn >= 0 else drawn + reading.range_microjoules
        return total / 1e6

    def _read(self) -> dict[str, _Reading]:
        found = {}
        # `intel-rapl:0` is a package, on AMD too; `intel-rapl:0:1` a part of it.
        for zone in self._counters.glob("intel-rapl:[0-9]*"):
            if zone.name.count(":") != 1:
                continue
            try:
                found[zone.name] = _Reading(
                    int((zone / "energy_uj").read_text()),
                    int((zone / "max_energy_range_uj").read_text()),
                )
            except (OSError, ValueError):
                continue
        return found
