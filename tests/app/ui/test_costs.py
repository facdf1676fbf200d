"""The tables of the settings say what the loaded model takes."""

from app.ui.costs import costs, usage
from engine.kv.store import KVUsage
from tests.app.test_memory import memory


def test_the_costs_are_those_of_the_loaded_model() -> None:
    shown = costs(memory())
    assert "Context of 8,192 tokens, 23 kB each</th><td>189 MB" in shown
    assert "The model itself</th><td>98 MB" in shown
    assert "2.3 MB of 1 GB" in usage(memory())
    assert "about 100 tokens" in usage(memory())


def test_a_notice_of_the_disk_is_shown() -> None:
    told = KVUsage(ram_bytes=0, notice="The disk <is> full: free some space.")
    assert "The disk &#x0003C;is" in usage(memory(usage=told))
