"""What the looking at a machine asks of the app's services."""

from pathlib import Path
from typing import Protocol

from app.chat.chat_model import ChatModel
from app.history.conversations import Conversations
from app.history.database import Database
from app.memory import Memory
from app.paths import Paths
from app.settings import Settings
from engine.config import EngineConfig


class Home(Protocol):
    """One home and its model, which is loaded when it is asked for."""

    @property
    def paths(self) -> Paths: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def database(self) -> Database: ...
    @property
    def conversations(self) -> Conversations: ...
    @property
    def model_path(self) -> Path: ...
    @property
    def engine_config(self) -> EngineConfig: ...
    @property
    def loaded_model(self) -> ChatModel | None: ...
    @property
    def memory(self) -> Memory | None: ...
    async def chat_model(self) -> ChatModel: ...
