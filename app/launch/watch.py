"""Tells the launcher what the app is doing, so that a crash can be explained afterwards."""

import asyncio

from app.launch.crash import GPU
from app.launch.link import Doing, Link, end_this_process
from app.services import Services

LOOK_S = 0.2


class Watch:
    """Owned by the event loop of the app."""

    def __init__(self, services: Services, link: Link) -> None:
        self._services = services
        self._link = link
        self.is_page_ready = False

    async def run(self) -> None:
        """Until it is cancelled, or the engine has died: then the app is ended, too."""
        while True:
            self.look()
            fault = self.fault
            if fault:
                self._link.fault(fault)
                # What was written of an answer is stored on the way out.
                end_this_process()
                return
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        services = self._services
        is_loading = services.loaded_model is None and not services.model_error
        self._link.tell(
            Doing(
                page=self.is_page_ready,
                model=services.model.name,
                is_loading=is_loading,
                answering=self._answering(),
            )
        )

    def _answering(self) -> str:
        """By figures alone: which words they are is nobody's business."""
        jobs = self._services.jobs.running()
        if any(job.answer.message.content or job.answer.message.thinking for job in jobs):
            return "writing"
        if jobs or self._services.activity()["running"]:
            return "reading"
        return ""

    @property
    def fault(self) -> str:
        """What killed the engine, by its kind; empty while it lives."""
        model = self._services.loaded_model
        death = None if model is None else model.loaded.engine.death
        if death is None or model is None or model.loaded.is_closing.is_set():
            return ""
        card = GPU.search(str(death))
        return f"{type(death).__name__}: {card.group()}" if card else type(death).__name__
