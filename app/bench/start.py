"""How long the app takes from the start of its process to the first event of the chat's queue.

The other side is a process that does nothing but import gradio and load the model, one after the
other: what no program with these two can do without. And the same app under its launcher: when
something is seen, when it can be used, and how long it takes to be back after a crash.
"""

import argparse
import http.client
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from app.bench.app_process import START_S, AppProcess, environment, new_home
from app.bench.compare import Bar, Pair, figure_of, interleave, show_pair
from app.bench.launched import launch_and_crash
from app.bench.machine import Others, machine
from app.bench.options import add_effort, add_model
from app.bench.our_engine import model_of
from app.bench.report import Report
from engine.errors import EngineError

BAR = Bar(at_most=1.5)
SPLASH = Bar(at_most=0.4)
RETURN = Bar(at_most=1.3)
COLUMNS = ("part", "seconds", "low", "high", "runs", "bar", "passed")
SESSION = "inglenookbench"

GRADIO = "import gradio"
MODEL = (
    "from pathlib import Path; from engine.config import EngineConfig; from engine.loading import"
    " load; load(EngineConfig(model_path=Path(sys.argv[1])))"
)
# Each in a process of its own; what they take together is less, since they share imports.
PARTS: Mapping[str, str] = {
    "Python alone": "",
    "gradio imported": GRADIO,
    "page imported": (
        "from app.web import environment; from app.paths import Paths;"
        " environment.prepare(Paths.from_environment().cache); import app.ui.page"
    ),
    "model loaded": MODEL,
    "history opened": (
        "from app.paths import Paths; from app.history.database import Database;"
        " paths = Paths.from_environment(); paths.create(); Database(paths.database).close()"
    ),
}
BASELINE = f"{GRADIO}\n{MODEL}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_effort(parser, pairs=10, minutes=5.0)


class Started(dict[str, float]):
    """Seconds from the start of a process to what the key names."""


def run(options: argparse.Namespace) -> Report:
    model = model_of(options.model)
    facts = machine(model=model.stem)
    with Others() as others:
        runs = range(min(3, options.pairs))
        parts = {name: [alone(code, model) for _ in runs] for name, code in PARTS.items()}
        pairs, figures = interleave(
            lambda number: start_app(options.model),
            lambda number: Started(first_event=alone(BASELINE, model)),
            lambda pair: {"ratio": pair.ours["first_event"] / pair.theirs["first_event"]},
            minutes=options.minutes,
            min_pairs=options.pairs,
            on_pair=show_pair(),
        )
        launches = [launch_and_crash(options.model, first_event) for _ in range(options.pairs)]
    rows: list[dict[str, Any]] = [
        {"part": name, "seconds": median(values), "runs": len(values)}
        for name, values in parts.items()
    ]
    served = ("app: served", "served"), ("app: first event", "first_event")
    rows += [row(name, [pair.ours[key] for pair in pairs]) for name, key in served]
    rows.append(row("gradio and model alone", [pair.theirs["first_event"] for pair in pairs]))
    rows.append(verdict(pairs) | {"ratio": figures["ratio"].median})
    rows += launched_rows(launches)
    notes = [
        "The single parts are processes of their own; the app imports its page while it loads.",
        f"Others and the children kept {others.cores:.2f} cores busy.",
    ]
    return Report("start", facts, rows, COLUMNS, ("part", "seconds"), notes)


def row(name: str, values: list[float]) -> dict[str, Any]:
    figure = figure_of(values)
    return {
        "part": name,
        "seconds": figure.median,
        "low": figure.low,
        "high": figure.high,
        "runs": figure.num,
    }


def verdict(pairs: list[Pair[Started]]) -> dict[str, Any]:
    """The median of the differences; a share of a difference near nothing would say nothing."""
    more = [pair.ours["first_event"] - pair.theirs["first_event"] for pair in pairs]
    found = row("app minus the two alone", more)
    return found | {"bar": str(BAR), "passed": BAR.is_met_by(found["high"])}


def launched_rows(launches: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    """Seconds of the splash, of a start and of a return, and the share of the last two."""
    splash = row("launched: something is seen", [each["splash"] for each in launches])
    usable = row("launched: first event", [each["usable"] for each in launches])
    back = row("after a crash: first event", [each["back"] for each in launches])
    share = row("return over start (a share)", [each["back"] / each["usable"] for each in launches])
    splash |= {"bar": str(SPLASH), "passed": SPLASH.is_met_by(splash["high"])}
    share |= {"bar": str(RETURN), "passed": RETURN.is_met_by(share["high"])}
    return [splash, usable, back, share]


def alone(code: str, model: Path) -> float:
    """Seconds of a process that does this and ends without tidying."""
    script = f"import os, sys\n{code}\nprint('done', flush=True)\nos._exit(0)"
    with new_home() as home:
        began = perf_counter()
        with subprocess.Popen(
            [sys.executable, "-c", script, str(model)],
            env=environment(Path(home)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            seconds = perf_counter() - began
            process.wait(START_S)
    if line != "done\n":
        raise EngineError(f"A part of the start failed: {code}")
    return seconds


def start_app(model: str) -> Started:
    """Start it in an empty home, and be the browser until the chat's first event."""
    with new_home() as home, AppProcess(Path(home), model) as process:
        first_event(process.url)
        return Started(served=process.ready_s, first_event=perf_counter() - process.began)


def first_event(url: str) -> None:
    """What a browser asks for, up to the first answer of the queue; no script is run."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=START_S)
    try:
        read(connection, "GET", "/")
        config = json.loads(read(connection, "GET", "/config"))
        body = {
            "data": [None] * len(queued(config)["inputs"]),
            "fn_index": queued(config)["id"],
            "session_hash": SESSION,
            "trigger_id": None,
            "event_data": None,
        }
        headers = {"Origin": url.rstrip("/"), "Content-Type": "application/json"}
        read(connection, "POST", "/gradio_api/queue/join", json.dumps(body), headers)
        connection.request("GET", f"/gradio_api/queue/data?session_hash={SESSION}")
        for line in connection.getresponse():
            if line.startswith(b"data:"):
                event = json.loads(line[5:])
                if event["msg"] in ("process_generating", "process_completed"):
                    if not event.get("success", True):
                        raise EngineError(f"The page's first event failed: {event}")
                    return
        raise EngineError("The page closed its queue before the first event.")
    finally:
        connection.close()


def queued(config: Mapping[str, Any]) -> dict[str, Any]:
    """The event that shows the conversation; the other one in the queue, which holds the stream
    open, shows nothing."""
    found: dict[str, Any] = next(
        one
        for one in config["dependencies"]
        if one["backend_fn"] and one["queue"] is not False and one["outputs"]
    )
    return found


def read(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    connection.request(method, path, body, dict(headers or {}))
    response = connection.getresponse()
    answer = response.read()
    if response.status != 200:
        raise EngineError(f"{method} {path} was answered with {response.status}: {answer[:200]!r}")
    return answer
