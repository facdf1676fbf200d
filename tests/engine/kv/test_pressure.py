"""Memory pressure: the budget shrinks while memory is short and comes back afterwards."""

from engine.kv.pressure import MemoryPressure


class Machine:
    def __init__(self) -> None:
        self.now = 0.0
        self.free = 0.5
        self.pressure = MemoryPressure(6400, lambda: self.free, lambda: self.now)

    def look(self) -> int | None:
        self.now += 1.1
        return self.pressure.budget()


def test_the_budget_is_halved_until_there_is_memory_again_and_then_comes_back() -> None:
    machine = Machine()
    assert machine.look() is None
    machine.free = 0.05
    assert [machine.look() for _ in range(3)] == [3200, 1600, 800]
    machine.free = 0.15
    assert machine.look() is None
    machine.free = 0.3
    assert [machine.look() for _ in range(4)] == [1600, 3200, 6400, None]


def test_it_comes_back_from_nothing() -> None:
    machine = Machine()
    machine.free = 0.01
    for _ in range(20):
        machine.look()
    machine.free = 0.5
    budgets = [machine.look() for _ in range(8)]
    assert 6400 in budgets


def test_it_looks_once_a_second_and_follows_a_new_choice() -> None:
    machine = Machine()
    machine.free = 0.05
    assert machine.pressure.budget() is None
    assert machine.pressure.choose(100) == 100
    assert machine.look() == 50
