"""Which ready-made forms there are, and whether the loaded model can be kept to one."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from app.chat.answer_form import AnswerForm
from app.chat.chat_model import ChatModel
from app.chat.guided import Checker
from engine.errors import GrammarError
from engine.guided.answer import Guidance
from engine.guided.grammar import Grammar, GrammarKind
from grammars.catalog import SUFFIX, FormFileError, ReadyForm, read_form_file, ready_forms


@dataclass(frozen=True, slots=True)
class ReadyForms:
    """By name, the user's own before those of the app; `faults` tell which files are no forms."""

    forms: Mapping[str, ReadyForm]
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """`fault` says why a form cannot be kept to, or is empty.

    `is_approximable`: it could be if it were checked afterwards. `unenforced`: it will be checked
    afterwards, because this cannot be enforced.
    """

    fault: str = ""
    is_approximable: bool = False
    unenforced: str = ""


class Forms:
    """Owned by the event loop. `folder` holds the user's own and may be missing; `model` gives the
    loaded model or raises the sentence that says why there is none."""

    def __init__(self, folder: Path, model: Callable[[], Awaitable[ChatModel]]) -> None:
        self._folder = folder
        self._model = model

    async def ready(self) -> ReadyForms:
        """As the files are now."""
        return await asyncio.to_thread(_read, self._folder)

    async def judge(self, form: AnswerForm) -> Verdict:
        """Raises what stands in the way of finding out."""
        model = await self._model()
        grammar = form.grammar
        try:
            return Verdict(unenforced=await _unenforced(model, grammar))
        except GrammarError as error:
            fault = str(error)
        if grammar.kind is not GrammarKind.JSON_SCHEMA or grammar.is_approximate:
            return Verdict(fault)
        try:
            await _unenforced(model, replace(grammar, is_approximate=True))
        except GrammarError:
            return Verdict(fault)
        return Verdict(fault, is_approximable=True)


async def _unenforced(model: ChatModel, grammar: Grammar) -> str:
    """What has to be checked afterwards. Raises GrammarError."""
    compiled = await model.loaded.grammars.compile(grammar)
    # It reads the schema once more, and may find fault with what it would check by.
    await asyncio.to_thread(Checker, Guidance(compiled))
    return compiled.unenforced


def _read(folder: Path) -> ReadyForms:
    own: dict[str, ReadyForm] = {}
    faults: list[str] = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            form = read_form_file(path)
        except FormFileError as error:
            faults.append(str(error))
        else:
            own[form.name] = form
    return ReadyForms(
        {**own, **{n: f for n, f in ready_forms().items() if n not in own}}, tuple(faults)
    )
