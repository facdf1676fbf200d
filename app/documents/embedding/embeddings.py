"""Vectors of the library's passages: made in the background, and a question's when it is asked.

    woken -> which model was chosen -> its process -> passages without a vector, a few at a time
                                                      `-> all done: the old model's vectors go

Text search waits a few seconds for a question's vector, and for nothing else. Nothing is lost by
an end in the middle: what has a vector has it, and the rest follows.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.documents.background import Background
from app.documents.embedding.choice import NONE, EmbedderChoice
from app.documents.embedding.embedder import Embedder
from app.documents.embedding.language import languages_of
from app.documents.embedding.model_files import is_there, process_for
from app.documents.embedding.patience import Patience
from app.documents.embedding.process import EmbeddingProcess
from app.documents.embedding.trial import Trial, check_meaning
from app.documents.embedding.vectors import (
    Progress,
    Used,
    Wanted,
    forget_all,
    has_passages,
    look_at_languages,
    next_without,
    progress,
    put_vectors,
    take_on,
    use_only,
    used,
)
from app.documents.fusion import Meant
from app.history.database import Database
from engine.errors import EngineError, HomeError, ModelError, ModelUnsupported

AT_ONCE = 16
"""Passages in one transaction: what an end in the middle costs."""
DOCUMENTS_AT_ONCE = 20
QUIET_LOOK_S = 0.25
PATIENCE_S = 5.0
"""A question's vector takes 10 to 40 ms, and 1 to 2 s more where its process must start."""

Made = tuple[Wanted, NDArray[np.float32]]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Embedding:
    """How vectors are made. `folder` keeps models that are made of packages, `choose` tells what is
    chosen now, and `is_busy` whether a model writes, for which passages wait. `command` starts the
    process; empty: this program. A question waits `patience_s` for its vector."""

    folder: Path
    choose: Callable[[], EmbedderChoice]
    is_busy: Callable[[], bool] = lambda: False
    command: tuple[str, ...] = ()
    patience_s: float = PATIENCE_S


NO_EMBEDDING = Embedding(Path(), lambda: EmbedderChoice(NONE))


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """`chosen` is the model that was chosen, `searched` the one whose vectors are searched now;
    None: there is none. `problem` says why there are no more vectors, or nothing."""

    choice: EmbedderChoice
    chosen: Embedder | None
    searched: Embedder | None
    progress: Progress
    is_working: bool
    problem: str


class Embeddings:
    """Owned by the event loop. `finder` reads what `store` writes. `background` is woken where
    there may be passages without a vector, or another choice."""

    def __init__(self, store: Database, finder: Database, embedding: Embedding) -> None:
        self._store = store
        self._finder = finder
        self._folder = embedding.folder
        self._choose = embedding.choose
        self._is_busy = embedding.is_busy
        self._command = embedding.command
        self.background = Background(self._make_what_is_missing, "no more vectors are made")
        self._chosen: tuple[EmbedderChoice, EmbeddingProcess] | None = None
        self._former: EmbeddingProcess | None = None
        self._given_up: set[Wanted] = set()
        self._after: dict[int, int] = {}
        """Up to which passage each embedder has come."""
        self._problem = ""
        self.is_waiting = False
        """For a model that writes."""
        self._opening = asyncio.Lock()
        self._patience = Patience[Meant](embedding.patience_s)

    async def close(self) -> None:
        await self.background.close()
        await self._patience.close()
        await self._let_go()

    async def meant(self, question: str) -> Meant | None:
        """What a question means, for the vectors that are searched. None: words alone are, also
        where the vector does not come in time."""
        if self._choose().model == NONE:
            return None
        searched = await self._finder.run(used)
        languages = languages_of(question)
        if searched is None or not searched.embedder.knows(languages):
            return None

        async def compute() -> Meant | None:
            try:
                process = await self._process_of(searched)
                if process is None:
                    return None
                vector = await process.embed(question, is_query=True)
            except (ModelError, EngineError, HomeError) as error:
                logger.warning("a question was searched by its words alone: %s", error)
                return None
            return Meant(searched.embedder_id, vector, languages)

        return await self._patience.wait_for(compute)

    async def try_out(self, choice: EmbedderChoice) -> Trial:
        """What it is, that it tells texts apart, and what choosing it costs; nothing is changed.
        Raises ModelError, HomeError."""
        process = await self._new_process(choice)
        try:
            embedder = await process.embedder()
            seconds = await check_meaning(process)
        except EngineError as error:
            raise ModelUnsupported(str(error)) from error
        finally:
            await process.close()
        await self._look_at_languages()
        found = await self._finder.run(
            lambda tables: progress(tables, embedder.key, embedder.languages)
        )
        return Trial(embedder, found.num_without, found.num_without * seconds)

    async def status(self) -> EmbeddingStatus:
        choice = self._choose()
        searched = await self._finder.run(used)
        chosen = None
        if self._chosen is not None and self._chosen[0] == choice:
            chosen = self._chosen[1].known
        if chosen is None and searched is not None and choice.model != NONE:
            chosen = searched.embedder
        languages = chosen.languages if chosen is not None else choice.known_languages or ()
        key = "" if chosen is None else chosen.key
        found = await self._finder.run(lambda tables: progress(tables, key, languages))
        return EmbeddingStatus(
            choice,
            chosen,
            None if searched is None else searched.embedder,
            found,
            self.background.is_working,
            self._problem,
        )

    async def _make_what_is_missing(self) -> None:
        choice = self._choose()
        self._problem = ""
        if choice.model == NONE:
            await self._store.run(forget_all)
            await self._let_go()
            return
        try:
            await self._make_all(choice)
        except (ModelError, HomeError) as error:
            self._problem = str(error)
            if is_there(choice.model):
                logger.warning("no vectors are made: %s", error)

    async def _make_all(self, choice: EmbedderChoice) -> None:
        """Raises ModelError, HomeError."""
        if not await self._finder.run(has_passages):
            # No process for nothing.
            return
        process = await self._chosen_process(choice)
        embedder = await process.embedder()
        embedder_id = await self._store.run(lambda tables: take_on(tables, embedder))
        find = partial(next_without, embedder_id=embedder_id, languages=embedder.languages)
        count = partial(progress, key=embedder.key, languages=embedder.languages)
        after, num_made, is_whole = self._after.get(embedder_id, 0), 0, False
        await self._look_at_languages()
        while self._choose() == choice:
            wanted = await self._finder.run(partial(find, after=after, limit=AT_ONCE))
            if wanted:
                made = await self._make(process, wanted)
                put = partial(put_vectors, embedder_id=embedder_id, made=made)
                await self._store.run(put)
                num_made += len(made)
                self._after[embedder_id] = after = wanted[-1].passage_id
                continue
            left = (await self._finder.run(count)).num_without
            if left <= len(self._given_up) or is_whole and not num_made:
                break
            # Some have smaller numbers: what came may have that of one that went.
            await self._look_at_languages()
            after, num_made, is_whole = 0, 0, True
        else:
            self.background.wake()
            return
        await self._store.run(lambda tables: use_only(tables, embedder_id))
        await self._let_former_go()

    async def _look_at_languages(self) -> None:
        """Of documents that are new."""
        while await self._store.run(partial(look_at_languages, limit=DOCUMENTS_AT_ONCE)):
            pass

    async def _make(self, process: EmbeddingProcess, wanted: list[Wanted]) -> list[Made]:
        """Raises ModelError."""
        made = []
        for each in wanted:
            if each in self._given_up:
                continue
            while self._is_busy():
                self.is_waiting = True
                await asyncio.sleep(QUIET_LOOK_S)
            self.is_waiting = False
            try:
                made.append((each, await process.embed(each.text, is_query=False)))
            except EngineError as error:
                logger.warning("a passage has no vector: %s", error)
                self._given_up.add(each)
        return made

    async def _chosen_process(self, choice: EmbedderChoice) -> EmbeddingProcess:
        async with self._opening:
            if self._chosen is not None and self._chosen[0] == choice:
                return self._chosen[1]
            if self._chosen is not None:
                former, self._chosen = self._chosen[1], None
                await former.close()
            process = await asyncio.to_thread(
                lambda: process_for(choice, self._folder, self._command)
            )
            # What one model cannot compute another one may.
            self._given_up.clear()
            self._chosen = (choice, process)
            return process

    async def _new_process(self, choice: EmbedderChoice) -> EmbeddingProcess:
        make = partial(process_for, choice, self._folder, self._command)
        return await asyncio.to_thread(make)

    async def _process_of(self, searched: Used) -> EmbeddingProcess | None:
        """That which computes with the embedder that is searched: the chosen one, or the one
        before. None: its file is another one by now. Raises ModelError."""
        embedder, path = searched.embedder, Path(searched.embedder.path)
        async with self._opening:
            chosen = None if self._chosen is None else self._chosen[1]
            # It may be starting now: a second one would hold the same model.
            if (
                chosen is not None
                and chosen.path == path
                and (await chosen.embedder()).key == embedder.key
            ):
                return chosen
            if self._former is None or self._former.path != path:
                await self._let_former_go()
                self._former = EmbeddingProcess(
                    path, embedder.prefixes, embedder.languages, self._command
                )
            former = self._former
            return former if (await former.embedder()).key == embedder.key else None

    async def _let_former_go(self) -> None:
        former, self._former = self._former, None
        if former is not None:
            await former.close()

    async def _let_go(self) -> None:
        chosen, self._chosen = self._chosen, None
        if chosen is not None:
            await chosen[1].close()
        await self._let_former_go()
