"""`inglenook bench NAME`: the benchmarks by name, each a file of this folder.

A benchmark runs in its own process and never in the running app, and it opens no home.
"""

import argparse
import importlib
from collections.abc import Mapping, Sequence

BENCHES: Mapping[str, str] = {
    "decode": "tokens a second, beside llama.cpp's server; --busy: on a busy machine",
    "batching": "continuous against static batching on mixed lengths",
    "sampling": "what picking one token costs, beside llama.cpp's samplers",
    "guided": "what a form costs and forced tokens gain, beside llama.cpp's grammars",
    "speculate": "what guessing brings where much is said again, and costs where nothing is",
    "chats": "what the next turn of a conversation waits for, beside a peer; eight workloads",
    "tiers": "processor time for keeping what was read, where it brings nothing",
    "whole": "a second question about a document that was read from beginning to end",
    "docs": "files: pages a second, memory, a rescan, a question, and a chat meanwhile",
    "fit": "whether memory and speed of a model are what was foretold before it was loaded",
    "start": "from process start to the first event of the page, and back after a crash",
    "page": "a conversation of 500 messages beside one of ten, in a browser",
}


def measure(
    kind: str,
    summaries: Mapping[str, str],
    arguments: Sequence[str],
    parser: argparse.ArgumentParser,
) -> int:
    """Run one file of `app/{kind}`, and print its report; what is happening meanwhile goes to
    standard error."""
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    wanted = next((argument for argument in arguments if argument in summaries), None)
    for name, summary in summaries.items():
        one = names.add_parser(name, help=summary, description=f"{summary}.".capitalize())
        # Only the one that is wanted is imported.
        if name == wanted:
            module = importlib.import_module(f"app.{kind}.{name}")
            module.add_arguments(one)
    options = parser.parse_args(arguments)
    print(importlib.import_module(f"app.{kind}.{options.name}").run(options).text(), flush=True)
    return 0
