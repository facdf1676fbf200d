"""Why the app's process ended when nobody asked it to: in one sentence, and who is the suspect.

Only lines of a known kind are taken from the log, because others may hold what a person wrote.
"""

import re
import signal
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

from app.launch.child import End
from app.launch.link import Doing

MOST_LINES = 30

# What Windows says in place of a signal.
WINDOWS_CODES = {
    0xC0000005: "SIGSEGV",
    0xC000001D: "SIGILL",
    0xC0000094: "SIGFPE",
    0xC00000FD: "SIGSEGV",
    0xC0000409: "SIGABRT",
    0xC0000017: "STATUS_NO_MEMORY",
}
WORDS = {
    "SIGSEGV": "a fault in memory (SIGSEGV)",
    "SIGBUS": "a fault in memory (SIGBUS)",
    "SIGABRT": "a failed check in a library (SIGABRT)",
    "SIGILL": "an instruction that this processor does not have (SIGILL)",
    "SIGFPE": "an impossible computation (SIGFPE)",
    "SIGTRAP": "a failed check in a library (SIGTRAP)",
    "SIGKILL": "something outside of it that ended it (SIGKILL)",
}

FILE_CHANGED = (
    "a fault in memory (SIGBUS), as comes about where the model's file is changed or cut off while"
    " it is used,"
)
KILLED_FOR_MEMORY = "being ended by the system (SIGKILL), probably because memory ran out"

GPU = re.compile(
    r"CUDA error|ggml_cuda|CUDA out of memory|cudaError|HIP error|ggml_vulkan|vk::|ggml_metal"
)
MEMORY = re.compile(r"bad_alloc|MemoryError|[Oo]ut of memory|failed to allocate|[Cc]annot allocate")
FRAME = re.compile(r'^\s+File "(?P<file>[^"]+)", line (?P<line>\d+),? in (?P<name>[\w.<>]+)')
ERROR = re.compile(r"^(?:[a-z_]\w*\.)*(?P<name>[A-Z]\w*(?:Error|Exception|Dead))\b")
TELLING = (
    re.compile(r"^Fatal Python error: [A-Z][\w ]{0,60}"),
    re.compile(r"^Windows fatal exception: [\w ]{0,60}"),
    re.compile(r"^(?:Current t|T)hread 0x[0-9a-f]+"),
    re.compile(r"^\S+:\d+: GGML_ASSERT\([^\"]{0,200}\) failed"),
    re.compile(r"^\S*ggml\S*:\d+: .{0,80}"),
    re.compile(r"^CUDA error: [\w ,]{0,100}"),
    re.compile(r"^ {2}current device: \d+, in function \w+ at \S+"),
    re.compile(r"^terminate called after throwing an instance of '[\w:]+'"),
)
STATE = re.compile(r"state_blob|/kv/|\\kv\\|step_state|segment")


class Suspect(StrEnum):
    MODEL = "model"
    MEMORY = "memory"
    GPU = "graphics card"
    PROCESSOR = "processor"
    STORED = "stored memory of conversations"
    APP = "app"
    OUTSIDE = "system, another program, or somebody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """`cause` is a sentence without its end; `lines` are what the log tells about it; `when` is a
    date and a time."""

    signal: str
    cause: str
    suspect: Suspect
    model: str
    lines: tuple[str, ...]
    when: str = ""

    @property
    def sentence(self) -> str:
        clock = self.when[11:16]
        return f"{self.cause}, at {clock}." if clock else f"{self.cause}."

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Self:
        """Raises ValueError or TypeError for what is none."""
        values = dict(given)
        values["suspect"] = Suspect(values["suspect"])
        values["lines"] = tuple(str(line) for line in values["lines"])
        return cls(**values)


def crash_of(end: End, when: str = "") -> Crash:
    name = signal_name(end.code)
    lines = telling_lines(end.log)
    suspect = _suspect(name, end)
    return Crash(
        signal=name,
        cause=_cause(name, end, suspect),
        suspect=suspect,
        model=end.doing.model,
        lines=lines,
        when=when,
    )


def signal_name(code: int) -> str:
    """Of a return code; empty when the process ended by itself."""
    if code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    return WINDOWS_CODES.get(code, "")


def telling_lines(log: str) -> tuple[str, ...]:
    """Frames, failed checks and kinds of errors, in their order."""
    found: list[str] = []
    for line in log.splitlines():
        frame = FRAME.match(line)
        error = ERROR.match(line)
        told = next(filter(None, (kind.match(line) for kind in TELLING)), None)
        if frame is not None:
            found.append(f"  {frame['file']}:{frame['line']} {frame['name']}")
        elif told is not None:
            found.append(told.group())
        elif error is not None:
            found.append(error["name"])
    if len(found) > MOST_LINES:
        # The head names the fault, and the end the last thread.
        found = [*found[: MOST_LINES - 5], "...", *found[-4:]]
    return tuple(found)


def _suspect(name: str, end: End) -> Suspect:
    said = f"{end.fault}\n{end.log}"
    if GPU.search(said):
        return Suspect.GPU
    if name == "STATUS_NO_MEMORY" or MEMORY.search(said):
        return Suspect.MEMORY
    if name == "SIGKILL":
        # Everybody may send it; only a reason to think of memory makes it that.
        return Suspect.MEMORY if end.memory_ran_out else Suspect.OUTSIDE
    if name == "SIGILL":
        return Suspect.PROCESSOR
    if any(STATE.search(frame) for frame in _current_frames(end.log)):
        return Suspect.STORED
    if end.doing.is_loading or end.doing.answering:
        return Suspect.MODEL
    return Suspect.APP


def _current_frames(log: str) -> list[str]:
    """Of the thread that crashed, innermost first; empty when the log has none."""
    _, found, rest = log.rpartition("Current thread 0x")
    if not found:
        return []
    frames = []
    for line in rest.splitlines()[1:]:
        if not FRAME.match(line):
            break
        frames.append(line)
    return frames


def _cause(name: str, end: End, suspect: Suspect) -> str:
    how = WORDS.get(name, name)
    if suspect is Suspect.GPU:
        how = f"a fault of the graphics card{f' ({name})' if name else ''}"
    elif suspect is Suspect.MEMORY and name == "SIGKILL":
        how = KILLED_FOR_MEMORY
    elif suspect is Suspect.MEMORY:
        how = f"too little memory{f' ({name})' if name else ''}"
    elif name == "SIGBUS" and end.doing.model:
        how = FILE_CHANGED
    elif not name:
        how = _orderly(end)
    return f"Inglenook was stopped by {how}{_at(end.doing)}"


def _orderly(end: End) -> str:
    errors = [match["name"] for line in end.log.splitlines() if (match := ERROR.match(line))]
    what = end.fault or (errors[-1] if errors else f"exit code {end.code}")
    return f"an error that nobody expected ({what})"


def _at(doing: Doing) -> str:
    model = doing.model
    if doing.is_loading and model:
        return f" while it loaded the model {model}"
    if doing.answering and model:
        return f" while {model} was {doing.answering}"
    return "" if doing.page else " while it started"
