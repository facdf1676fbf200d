"""From what was given on the command line to the options that travel to who carries them out."""

import argparse
import getpass
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.commands.options import Options
from app.commands.sampling_options import take_sampling
from app.documents.embedding.choice import NAMES as EMBEDDERS
from app.models.adapters import divided
from app.paths import Paths
from engine.config import MOST_ADAPTERS
from engine.errors import UsageError
from engine.guided.grammar import GrammarKind, grammar_kind
from grammars.catalog import FormFileError, forms_in, ready_forms

NAMING = ("info", "remove", "use")
"""Actions that take a model's name or its file."""
CHANGING = ("remove", "use")
"""Those for which no name at all must not mean the model in use."""


def options_of(parsed: argparse.Namespace) -> Options:
    """What travels: only plain values, files absolute, standard input read."""
    values = {key: value for key, value in vars(parsed).items() if value is not None}
    sampling = take_sampling(values)
    if values["command"] == "generate":
        values |= form_of(values)
        if values["text"] == "-":
            values["text"] = read_standard_input()
        if "num_beams" in values and "logprobs" in values:
            raise UsageError("A beam search tells scores, not --logprobs: leave one of them out.")
        if "num_beams" not in values and {"length_penalty", "early_stopping"} & values.keys():
            raise UsageError("--length-penalty and --early-stopping need --n-beams.")
        if "logprobs" in values and not values.get("json"):
            raise UsageError("--logprobs needs --json: likelihoods stand in the JSON object.")
        if values.get("draft_model") and values["reproducible"]:
            raise UsageError(
                "--draft-model needs --no-reproducible: what is reproducible is never guessed."
            )
        if not values["text"].strip():
            raise UsageError("There is nothing to answer: give a text, or - and a text to read.")
    if values["command"] == "docs" and values["action"] == "ask":
        if values["text"] == "-":
            values["text"] = read_standard_input()
        if not values["text"].strip():
            raise UsageError("There is nothing to answer: give a question, or - and one to read.")
        if values.get("collection") and values["files"]:
            raise UsageError("Give --collection or paths, not both.")
    if values["command"] == "docs" and values["action"] == "search" and not values["text"].strip():
        raise UsageError("There is nothing to look for: give the words of it.")
    if "adapters" in values:
        values["adapters"] = adapters_of(values["adapters"])
    for name in ("images", "sounds"):
        if name in values:
            values[name] = tuple(str(absolute(each)) for each in values[name])
    if values.get("mmproj"):
        values["mmproj"] = str(absolute(values["mmproj"]))
    if "files" in values:
        if not all(each.strip() for each in values["files"]):
            raise UsageError("The path of a file or a folder is empty: give one.")
        values["files"] = tuple(os.path.abspath(os.path.expanduser(f)) for f in values["files"])
    if not values.get("collection", "all").strip():
        raise UsageError(
            "The name of the collection is empty: give one, or leave --collection out."
        )
    if values.pop("asks_password", False):
        values["password"] = read_password()
    if "file" in values:
        if not values["file"].strip():
            raise UsageError("The path of the file is empty: give one.")
        values["file"] = str(absolute(values["file"]))
    for name in ("model", "draft_model"):
        if values.get(name) and absolute(values[name]).exists():
            values[name] = str(absolute(values[name]))
    text = values.get("text", "")
    if values["command"] == "models" and values["action"] in CHANGING and not text.strip():
        raise UsageError("The name of the model is empty: give one of `inglenook models list`.")
    if values["command"] == "models" and values["action"] in NAMING and absolute(text).is_file():
        values["text"] = str(absolute(text))
    if values["command"] == "docs" and values["action"] == "embedder":
        if text and text not in EMBEDDERS:
            values["text"] = str(absolute(text))
        if values.get("languages") is not None:
            values["languages"] = tuple(values["languages"].lower().replace(",", " ").split())
    if "ids" in values:
        values["ids"] = tuple(values["ids"])
    return Options(**values, sampling=sampling)


def adapters_of(given: Sequence[str] | None) -> tuple[tuple[str, float], ...]:
    """Each one's file, or the name that it is found by, and its scale."""
    named = [divided(each) for each in given or ()]
    if len(named) > MOST_ADAPTERS:
        raise UsageError(f"At most {MOST_ADAPTERS} adapters can be used at once, got {len(named)}.")
    return tuple(
        (str(absolute(file)) if absolute(file).exists() else file, scale) for file, scale in named
    )


def form_of(values: dict[str, Any]) -> dict[str, Any]:
    """The form of the answer, with the text of its file; takes the options out of `values`."""
    schema, grammar, regex, choices = (
        values.pop(name, None) for name in ("schema", "grammar", "regex", "choices")
    )
    if schema is not None:
        return {"grammar_kind": GrammarKind.JSON_SCHEMA.value, "grammar": read_file(schema)}
    if values["approximate"]:
        raise UsageError(
            "--approximate is for a schema, and every other form is enforced as a whole: give"
            " --schema with it, or leave it out."
        )
    if grammar is not None:
        return grammar_of(grammar)
    if regex is not None:
        return {"grammar_kind": GrammarKind.REGEX.value, "grammar": regex}
    if choices is not None:
        return {"grammar_kind": GrammarKind.CHOICE.value, "grammar": json.dumps(choices)}
    return {}


def grammar_of(name_or_file: str) -> dict[str, Any]:
    """A grammar in a file, or one of the ready forms; the user's own come first."""
    if absolute(name_or_file).is_file():
        text = read_file(name_or_file)
        return {"grammar_kind": grammar_kind(text).value, "grammar": text}
    try:
        forms = {**ready_forms(), **forms_in(Paths.from_environment().grammars)}
    except FormFileError as error:
        raise UsageError(str(error)) from error
    form = forms.get(name_or_file)
    if form is None:
        raise UsageError(
            f"There is no file and no form {name_or_file!r}; the forms are {', '.join(forms)}."
        )
    return {
        "grammar_kind": form.kind,
        "grammar": form.source,
        "grammar_examples": form.accepted,
    }


def read_file(path: str) -> str:
    try:
        return absolute(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name another file.") from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not a text in UTF-8 ({error.reason}): convert it first."
        ) from error


def read_standard_input() -> str:
    """All of it as UTF-8, whatever the terminal's encoding is."""
    try:
        return io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig").read()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"Standard input is not a text in UTF-8 ({error.reason}): convert it first."
        ) from error


def read_password() -> str:
    """Typed unseen, or the first line of standard input; never an argument, which others see."""
    if sys.stdin.isatty():
        password = getpass.getpass("Password of the files: ")
    else:
        password = read_standard_input().partition("\n")[0].removesuffix("\r")
    if not password:
        raise UsageError("--password was given and no password: type one, or leave it out.")
    return password


def absolute(path: str) -> Path:
    return Path(os.path.expanduser(path)).absolute()
