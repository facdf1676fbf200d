"""The machine that the app runs on, as `doctor` and the page look at it.

checks -> plan, KV, costs, roofline -> Findings, which are kept until somebody looks again
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from time import time

import psutil

from app.machine.check import Check
from app.machine.examination import Examination
from app.machine.findings import Findings
from app.machine.home import Home
from app.machine.kv_costs import KVCosts, kv_costs_of, weigh
from app.machine.plan import plan_of
from app.machine.predictions import predict
from app.machine.report import report_text
from app.machine.roofline import Roofline, roofline_of
from app.machine.self_test import SelfTest
from app.machine.storage import look_at_memory
from app.redaction import secrets_of
from engine.backends.llama_cpp.weights import read_weights
from engine.errors import InglenookError, ModelNotFound, UsageError


class ThisMachine:
    """Owned by the event loop. `findings` are those of the last look, `trials` those of the last
    self-test, or None."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._is_looking = False
        self.findings: Findings | None = None
        self.trials: list[Check] | None = None

    async def look(self, *, is_repair: bool = False, is_again: bool = False) -> Findings:
        """Look at everything: some seconds, and longer where the model has to be loaded.

        `is_again`: measure the rates of the machine anew. Raises UsageError while another look is
        on its way: the two would measure each other.
        """
        if self._is_looking:
            raise UsageError("This machine is being measured already: wait for some seconds.")
        self._is_looking = True
        try:
            self.findings = await self._look(is_repair, is_again)
        finally:
            self._is_looking = False
        return self.findings

    def report(self) -> str:
        """What can be sent to others; empty before anybody has looked."""
        if self.findings is None:
            return ""
        model = None
        with suppress(ModelNotFound):
            model = self._home.model_path
        secrets = secrets_of(self._home.paths, model)
        return report_text(self.findings, secrets, self.trials)

    async def try_out(self) -> list[Check]:
        """The self-test, kept in `trials`: ten seconds at most, once the model is loaded."""
        try:
            model = await self._home.chat_model()
        except InglenookError as error:
            remedy = "put right what the checks say"
            self.trials = [Check("model", False, str(error), remedy)]
        else:
            self.trials = await SelfTest(self._home, model).run()
        return self.trials

    async def _look(self, is_repair: bool, is_again: bool) -> Findings:
        seen = Examination(self._home, is_repair=is_repair, is_again=is_again)
        checks = await seen.checks()
        findings = Findings(
            looked_at=time(),
            checks=checks,
            memory_bandwidth=seen.memory_bandwidth,
            rates=seen.rates,
            predictions=[],
            processor=seen.processor,
            memory=look_at_memory(),
            gpus=seen.gpus,
            disk=seen.disk,
            costs=seen.costs,
        )
        if seen.rates is not None:
            available = int(psutil.virtual_memory().available)
            findings = replace(findings, predictions=predict(seen.rates, available))
        model = self._home.loaded_model
        if model is None or seen.processor is None or seen.costs is None:
            return findings
        kv, config = await self._kv_costs(), self._home.engine_config
        return replace(
            findings,
            kv=kv,
            plan=plan_of(config, seen.processor, seen.gpus, kv, model.loaded.backend),
            roofline=await asyncio.to_thread(self._roofline, findings),
        )

    async def _kv_costs(self) -> KVCosts:
        loaded = (await self._home.chat_model()).loaded
        budget = loaded.engine.kv_usage.ram_budget
        known = await asyncio.to_thread(kv_costs_of, self._home.engine_config, budget)
        # A state is one whole, of the same size for any length: a share of it says nothing.
        weighed = await weigh(self._home) if known.is_exact else None
        return replace(known, weighed_bytes_per_token=weighed)

    def _roofline(self, findings: Findings) -> Roofline | None:
        """Beside the roof of the model's own kind of weights, measured now."""
        from engine.backends.llama_cpp.matrix_product import TYPES, multiply_adds_per_second

        rates, costs = findings.rates, findings.costs
        weights = read_weights(self._home.model_path)
        if rates is None or costs is None or not weights.bytes_of_a_step:
            return None
        peak = rates.multiply_adds_per_s
        if weights.main_type in TYPES:
            peak = multiply_adds_per_second(weights.main_type, rates.num_threads)
        piece = self._home.engine_config.max_batch_tokens
        return roofline_of(self._home.model_path.stem, weights, costs, rates, peak, piece)
