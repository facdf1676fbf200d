"""The `inglenook` command: parse, find the owner of the home, carry out, and end with a code.

0 done, 1 failed with one sentence on standard error, 2 wrong use.
"""

import argparse
import asyncio
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.bench.benches import BENCHES, measure
from app.commands import quantize
from app.commands.carry_out import COMMANDS, carry_out
from app.commands.console import Terminal
from app.commands.options import Options
from app.commands.parser import Parser, port
from app.commands.relay import relay
from app.commands.sampling_options import add_sampling, take_sampling
from app.eval.evals import EVALS
from app.owner import HomeLock, OwnerAddress, own_or_find, owner_address
from app.paths import Paths
from app.selfcheck import NAMES, selfcheck
from app.services import Services
from app.version import VERSION
from engine.errors import InglenookError, UsageError
from engine.guided.grammar import GrammarKind, grammar_kind
from engine.logprobs import MOST_ALTERNATIVES
from engine.sampling.beam import MOST_BEAMS, EarlyStopping
from engine.sampling_params import MOST_ANSWERS
from grammars.catalog import FormFileError, forms_in, ready_forms

COMMAND_PATIENCE_S = 20.0
DRAFT_HELP = "a smaller model of the same vocabulary that guesses what comes next"
NAMING = ("info", "remove", "use")
"""Actions that take a model's name or its file."""
ID_HELP = "as `list` shows it, or its beginning"
EVAL_HELP = "Quality measured on data: a table, and as last line one JSON object."
BENCH_HELP = "One of our benchmarks: a table, and as last line one JSON object."


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code; a message for the user is never a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0].startswith("-") and given[0] not in ("-h", "--help", "--version"):
        given.insert(0, "run")
    try:
        if given[0] == "bench":
            parser = Parser(prog="inglenook bench", description=BENCH_HELP)
            return measure("bench", BENCHES, given[1:], parser)
        if given[0] == "eval":
            parser = Parser(prog="inglenook eval", description=EVAL_HELP)
            return measure("eval", EVALS, given[1:], parser)
        if given[0] == "launch":
            # It imports as little as it can, so it does not belong to what stands above.
            from app.launcher import launch

            return launch(given[1:])
        if given[:2] == ["models", "quantize"]:
            parser = Parser(prog="inglenook models quantize", description=quantize.SUMMARY)
            return quantize.run(given[2:], parser)
        parsed = make_parser().parse_args(given)
        if parsed.command == "run":
            return run_app(parsed)
        if parsed.command == "selfcheck":
            return selfcheck(parsed.only)
        return run_command(options_of(parsed))
    except InglenookError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has enough (`| head`); nothing is left to be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        print(f"This could not be done: {error.strerror or error}{place}.", file=sys.stderr)
        return 1


def run_app(parsed: argparse.Namespace) -> int:
    # The page is imported for this command alone: it takes seconds.
    from app.run import Run, run, run_launched

    asked = Run(
        host=parsed.host,
        port=parsed.port,
        model=parsed.model,
        draft_model=parsed.draft_model,
        opens_browser=not parsed.no_open,
        is_safe=parsed.safe,
    )
    return run_launched(asked) if parsed.launched else run(asked)


def run_command(options: Options) -> int:
    """In the running app when there is one, otherwise here."""
    paths = Paths.from_environment()
    paths.create()
    console = Terminal()
    if not COMMANDS[options.command].must_own(options):
        address = owner_address(paths)
        if address is not None and address.answers():
            return relay(address, options, console)
        return asyncio.run(run_here(paths, options, console))
    found = own_or_find(paths, COMMAND_PATIENCE_S)
    match found:
        case OwnerAddress():
            return relay(found, options, console)
        case HomeLock():
            with found:
                return asyncio.run(run_here(paths, options, console))


async def run_here(paths: Paths, options: Options, console: Terminal) -> int:
    services = Services(paths, options.model, options.draft_model)
    try:
        await carry_out(services, options, console)
    finally:
        await services.close()
    return 0


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
    if values.get("file"):
        values["file"] = str(absolute(values["file"]))
    for name in ("model", "draft_model"):
        if values.get(name) and absolute(values[name]).exists():
            values[name] = str(absolute(values[name]))
    text = values.get("text", "")
    if values["command"] == "models" and values["action"] in NAMING and absolute(text).is_file():
        values["text"] = str(absolute(text))
    if "ids" in values:
        values["ids"] = tuple(values["ids"])
    return Options(**values, sampling=sampling)


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


def absolute(path: str) -> Path:
    return Path(os.path.expanduser(path)).absolute()


def make_parser() -> Parser:
    parser = Parser(prog="inglenook", description="A private chat on your own machine.")
    parser.add_argument("--version", action="version", version=f"Inglenook {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("launch", help="start the app as a double click does", add_help=False)
    add_run(commands.add_parser("run", help="the app alone, in this terminal"))
    add_generate(commands.add_parser("generate", help="one answer to TEXT, stored nowhere"))
    add_chats(commands.add_parser("chats", help="the history: list, search, show, export, ..."))
    add_models(commands.add_parser("models", help="the models on this machine"))
    commands.add_parser("bench", help="one of our benchmarks", add_help=False)
    commands.add_parser("eval", help="quality measured on data", add_help=False)
    selfchecker = commands.add_parser("selfcheck", help="whether the program is whole")
    selfchecker.add_argument("--only", default="", choices=NAMES, help="one of its parts")
    add_doctor(commands.add_parser("doctor", help="what this machine is and what is wrong with it"))
    return parser


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=port, metavar="N", help="the port (default: a free one)")
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="the address to listen on")
    parser.add_argument("--model", default="", metavar="M", help="a GGUF file or a name")
    parser.add_argument("--draft-model", default="", metavar="M", help=DRAFT_HELP)
    parser.add_argument("--safe", action="store_true", help="little memory and no extras")
    # The app under a launcher, which speaks to it on standard input and output.
    parser.add_argument("--launched", action="store_true", help=argparse.SUPPRESS)


def add_generate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what to say; - reads standard input")
    parser.add_argument("--system", metavar="S", help="the system prompt")
    parser.add_argument("--model", metavar="M", help="a GGUF file or a name of `models list`")
    parser.add_argument("--draft-model", metavar="M", help=DRAFT_HELP)
    parser.add_argument(
        "--n",
        dest="num_answers",
        type=num_answers,
        metavar="N",
        help="so many answers, one after the other; with a seed each has the next one",
    )
    parser.add_argument(
        "--logprobs",
        type=num_alternatives,
        metavar="N",
        help="with --json: how likely each token was, and N others at its place",
    )
    beams = parser.add_argument_group("the best answers instead of drawn ones")
    beams.add_argument(
        "--n-beams",
        dest="num_beams",
        type=int,
        metavar="N",
        help=f"beam search with 1 to {MOST_BEAMS} beams; --n of its answers are given",
    )
    beams.add_argument(
        "--length-penalty",
        type=float,
        metavar="N",
        help="above 0 favours long answers, below 0 short ones (default 1)",
    )
    beams.add_argument(
        "--early-stopping",
        choices=[each.value for each in EarlyStopping],
        help="end as soon as there are enough answers (default false)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--schema", metavar="FILE", help="answer in JSON that satisfies this schema")
    form.add_argument(
        "--grammar", metavar="NAME|FILE", help="answer in a ready form, or in GBNF or Lark"
    )
    form.add_argument("--regex", metavar="R", help="answer with a match of all of R")
    form.add_argument(
        "--choice", dest="choices", action="append", metavar="A", help="answer with one of these"
    )
    parser.add_argument(
        "--approximate",
        action="store_true",
        help="take a schema that cannot be enforced as a whole; the answer is checked afterwards",
    )
    parser.add_argument(
        "--no-reproducible",
        dest="reproducible",
        action="store_false",
        help="computed together with other answers; may then differ from run to run",
    )
    add_json(parser)
    add_sampling(parser)


def add_chats(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add_json(actions.add_parser("list", help="all conversations, the newest first"))
    search = actions.add_parser("search", help="find TEXT in titles and messages")
    search.add_argument("text", metavar="TEXT")
    add_json(search)
    show = actions.add_parser("show", help="one conversation")
    show.add_argument("ids", nargs=1, metavar="ID", help=ID_HELP)
    add_json(show)
    export = actions.add_parser("export", help="whole trees as JSON: all, or those named")
    export.add_argument("ids", nargs="*", metavar="ID", help=ID_HELP)
    export.add_argument("--to", dest="file", metavar="FILE", help="instead of standard output")
    import_ = actions.add_parser("import", help="take in what `export` wrote")
    import_.add_argument("file", metavar="FILE")
    delete = actions.add_parser("delete", help="delete for good")
    delete.add_argument("ids", nargs="+", metavar="ID", help=ID_HELP)
    delete.add_argument("--yes", action="store_true", help="really; without it nothing is deleted")


def add_models(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    list_ = actions.add_parser("list", help="the files that can be used, and how they would do")
    list_.add_argument("--available", action="store_true", help="what can be downloaded instead")
    add_json(list_)
    search = actions.add_parser("search", help="ask Hugging Face for a name")
    search.add_argument("text", metavar="TEXT")
    add_json(search)
    add = actions.add_parser("add", help="let a file be found by its name, where it is")
    add.add_argument("file", metavar="PATH")
    add.add_argument("--copy", action="store_true", help="copy it into the models folder")
    add_json(add)
    download = actions.add_parser("download", help="bring a model from Hugging Face")
    download.add_argument(
        "text", metavar="NAME", help="of `list --available`, or OWNER/NAME; :Q4_K_M chooses a size"
    )
    download.add_argument("--quantization", metavar="Q", help="such as Q4_K_M, Q5_K_M or Q8_0")
    add_json(download)
    use = actions.add_parser("use", help="let a model answer from now on")
    use.add_argument("text", metavar="MODEL")
    add_json(use)
    remove = actions.add_parser("remove", help="delete what was downloaded, forget what was added")
    remove.add_argument("text", metavar="MODEL")
    remove.add_argument("--yes", action="store_true", help="really; without it nothing is done")
    add_json(remove)
    info = actions.add_parser("info", help="what a model is and what it needs")
    info.add_argument("text", nargs="?", default="", metavar="MODEL")
    add_json(info)
    actions.add_parser("quantize", help=quantize.SUMMARY, add_help=False)


def add_doctor(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument("--model", metavar="M", help="the model to look at")
    parser.add_argument("--repair", action="store_true", help="remove what is damaged in the cache")
    parser.add_argument(
        "--again", action="store_true", help="measure the rates of this machine anew"
    )
    parser.add_argument(
        "--self-test", action="store_true", help="try in ten seconds what the app promises"
    )
    parser.add_argument(
        "--report", action="store_true", help="a text to send, without names, keys and chats"
    )
    parser.add_argument(
        "--picture", dest="file", metavar="FILE", help="draw measured beside possible, as SVG"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object and nothing else")


def num_answers(text: str) -> int:
    number = int(text)
    if not 1 <= number <= MOST_ANSWERS:
        raise argparse.ArgumentTypeError(f"between 1 and {MOST_ANSWERS} answers, not {number}")
    return number


def num_alternatives(text: str) -> int:
    number = int(text)
    if not 0 <= number <= MOST_ALTERNATIVES:
        raise argparse.ArgumentTypeError(
            f"between 0 and {MOST_ALTERNATIVES} alternatives, not {number}"
        )
    return number


if __name__ == "__main__":
    sys.exit(main())
