"""What the command line takes: every command with its arguments, and what is said of each."""

import argparse

from app.commands import quantize
from app.commands.parser import Parser, port
from app.commands.sampling_options import add_sampling
from app.selfcheck import NAMES
from app.version import VERSION
from engine.config import BACKENDS
from engine.logprobs import MOST_ALTERNATIVES
from engine.sampling.beam import MOST_BEAMS, EarlyStopping
from engine.sampling_params import MOST_ANSWERS

LORA_HELP = "a LoRA adapter, a GGUF file or a name of `models list`; give it again for a second"
DRAFT_HELP = "a smaller model of the same vocabulary that guesses what comes next"
BACKEND_HELP = "who computes: llama.cpp, our engine for NVIDIA cards, or whichever suits"
MMPROJ_HELP = "the model's part for pictures and sounds (default: the mmproj file beside it)"
ID_HELP = "as `list` shows it, or its beginning"


def make_parser() -> Parser:
    parser = Parser(prog="inglenook", description="A private chat on your own machine.")
    parser.add_argument("--version", action="version", version=f"Inglenook {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("launch", help="start the app as a double click does", add_help=False)
    add_run(commands.add_parser("run", help="the app alone, in this terminal"))
    add_generate(commands.add_parser("generate", help="one answer to TEXT, stored nowhere"))
    add_chats(commands.add_parser("chats", help="the history: list, search, show, export, ..."))
    add_models(commands.add_parser("models", help="the models on this machine"))
    add_docs(commands.add_parser("docs", help="your own files: add, search, ask, ..."))
    add_cuda(commands.add_parser("cuda", help="what an NVIDIA card needs: install, status, remove"))
    add_updates(commands.add_parser("updates", help="ask whether there is a newer version"))
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
    add_lora(parser)
    add_mmproj(parser)
    add_backend(parser)
    parser.add_argument("--safe", action="store_true", help="little memory and no extras")
    # The app under a launcher, which speaks to it on standard input and output.
    parser.add_argument("--launched", action="store_true", help=argparse.SUPPRESS)


def add_generate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what to say; - reads standard input")
    parser.add_argument("--system", metavar="S", help="the system prompt")
    parser.add_argument("--model", metavar="M", help="a GGUF file or a name of `models list`")
    parser.add_argument("--draft-model", metavar="M", help=DRAFT_HELP)
    add_lora(parser)
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
    add_media(parser)
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


def add_docs(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="take folders or files in, and read them")
    add.add_argument("files", nargs="+", metavar="PATH", help="a folder, with all in it, or a file")
    add.add_argument("--collection", metavar="NAME", help="also into this collection")
    add.add_argument(
        "--password",
        dest="asks_password",
        action="store_true",
        help="ask for the password of the files that need one, or read it from standard input",
    )
    add_json(add)
    add_json(actions.add_parser("list", help="the folders and files that were added"))
    status = actions.add_parser("status", help="what became of every file")
    status.add_argument("files", nargs="*", metavar="PATH", help="only what lies here")
    status.add_argument("--collection", metavar="NAME", help="only this collection")
    add_json(status)
    search = actions.add_parser("search", help="find the places that have the words of TEXT")
    search.add_argument("text", metavar="TEXT")
    search.add_argument("--collection", metavar="NAME", help="only in this collection")
    add_json(search)
    ask = actions.add_parser("ask", help="answer QUESTION from the files, with the passages")
    ask.add_argument("text", metavar="QUESTION", help="what to answer; - reads standard input")
    ask.add_argument("files", nargs="*", metavar="PATH", help="only from what lies here")
    ask.add_argument("--collection", metavar="NAME", help="only from this collection")
    ask.add_argument(
        "--whole",
        action="store_true",
        help="read the one file that is asked from its beginning to its end, if it fits",
    )
    ask.add_argument("--model", metavar="M", help="a GGUF file or a name of `models list`")
    add_json(ask)
    add_sampling(ask)
    sum_up = actions.add_parser("sum-up", help="sum one file up, section by section")
    sum_up.add_argument("files", nargs="+", metavar="PATH", help="as it was added, or in it")
    sum_up.add_argument("--model", metavar="M", help="a GGUF file or a name of `models list`")
    add_json(sum_up)
    add_embedder(actions.add_parser("embedder", help="the model that finds by meaning"))
    remove = actions.add_parser("remove", help="forget what was read; the files stay")
    remove.add_argument("files", nargs="+", metavar="PATH", help="as it was added")
    remove.add_argument("--collection", metavar="NAME", help="take it out of this one only")
    add_json(remove)


def add_embedder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text",
        nargs="?",
        default="",
        metavar="MODEL",
        help="none, english, multilingual, or a GGUF file; without it what is used is shown",
    )
    parser.add_argument("--query-prefix", metavar="TEXT", help="what goes before a question")
    parser.add_argument("--passage-prefix", metavar="TEXT", help="what goes before a passage")
    parser.add_argument("--languages", metavar="en,de", help='those that the model knows, or "all"')
    parser.add_argument("--yes", action="store_true", help="also where it takes minutes")
    add_json(parser)


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


def add_cuda(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    install = actions.add_parser("install", help="say what it takes, and with --yes install it")
    install.add_argument("--yes", action="store_true", help="really; without it nothing is fetched")
    install.add_argument(
        "--torch-index",
        metavar="URL",
        help="where torch comes from (default: PyTorch's own index, with the build for the driver;"
        " none: from where pip takes everything)",
    )
    install.add_argument(
        "--anyway", action="store_true", help="although no card was found that it would help"
    )
    add_json(install)
    add_json(actions.add_parser("status", help="whether it is installed and used"))
    remove = actions.add_parser("remove", help="delete it")
    remove.add_argument("--yes", action="store_true", help="really; without it nothing is deleted")
    add_json(remove)


def add_updates(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="source",
        metavar="URL",
        help="where versions are published (default: what this build says of it)",
    )
    add_json(parser)


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


def add_media(parser: argparse.ArgumentParser) -> None:
    shown = parser.add_argument_group("what is shown with the text; give an option again for more")
    shown.add_argument(
        "--image",
        dest="images",
        action="append",
        metavar="FILE",
        help="a picture (PNG, JPEG, WebP, GIF or BMP)",
    )
    shown.add_argument(
        "--audio", dest="sounds", action="append", metavar="FILE", help="a sound (WAV)"
    )
    add_mmproj(parser)
    add_backend(parser)


def add_mmproj(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mmproj", metavar="FILE", help=MMPROJ_HELP)


def add_backend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", default="auto", choices=BACKENDS, help=BACKEND_HELP)


def add_lora(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lora", dest="adapters", action="append", metavar="FILE[:SCALE]", help=LORA_HELP
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
