"""Everyone who answers for models keeps the same promises."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.agent.ports import Models
from holdfast.agent.providers.http_provider import HttpModels, load_prices
from holdfast.agent.providers.keys import EnvironmentKeys, Keys
from holdfast.agent.providers.registry import Format, Provider
from holdfast.agent.providers.scripted import ScriptedAnswer, ScriptedModels
from holdfast.agent.testing import ModelsContract, Prepare
from holdfast.failures import RetryPolicy
from holdfast.world import SystemClock, SystemRandomSource
from tests.parts.provider_server import ProviderServer, reply

pytestmark = pytest.mark.anyio

POLICY = RetryPolicy(waits=((0.0, 0.0),) * 3)


class TestScriptedModels(ModelsContract):
    @pytest.fixture
    def prepare(self) -> Prepare:
        @asynccontextmanager
        async def prepared(lines: Sequence[ScriptedAnswer]) -> AsyncGenerator[Models]:
            yield ScriptedModels(lines, policy=POLICY)

        return prepared


@pytest.mark.promise("A9")
@pytest.mark.parametrize("form", list(Format), scope="class")
class TestHttpModels(ModelsContract):
    @pytest.fixture
    def prepare(self, form: Format) -> Prepare:
        @asynccontextmanager
        async def prepared(lines: Sequence[ScriptedAnswer]) -> AsyncGenerator[Models]:
            async with ProviderServer([reply(form, line) for line in lines]) as server:
                there = Provider("there", form, server.url, "THERE_API_KEY")
                keys = Keys([EnvironmentKeys({"THERE_API_KEY": "sk-there"})], file=Path("keys"))
                async with HttpModels(
                    {"there": there},
                    keys=keys,
                    prices=load_prices(),
                    clock=SystemClock(),
                    chance=SystemRandomSource(),
                    policy=POLICY,
                ) as models:
                    yield models

        return prepared
