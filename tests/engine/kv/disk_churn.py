"""A process that writes, removes, updates and reads in one folder until it is killed.

python -m tests.engine.kv.disk_churn FOLDER SEED
"""

import random
import sys
from dataclasses import replace
from pathlib import Path

from engine.kv.disk_folder import DiskFolder
from tests.engine.kv.stored import NAMESPACE, blob_of, key_of, number_of, stored

MAX_NUMBER = 127


def subtree(number: int) -> list[int]:
    """It and all that stands on it, the deepest first."""
    numbers = [number]
    for each in numbers:
        numbers += [child for child in (2 * each, 2 * each + 1) if child <= MAX_NUMBER]
    return numbers[::-1]


def churn(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    disk = DiskFolder(folder, NAMESPACE)
    held = {number_of(segment.key) for segment in disk.open()}
    print("ready", flush=True)
    while True:
        number = chance.randint(1, MAX_NUMBER)
        action = chance.random()
        if action < 0.7 and number not in held and (number == 1 or number // 2 in held):
            disk.write(stored(number), blob_of(number))
            held.add(number)
        elif action < 0.8 and number > 3:
            disk.remove([key_of(each) for each in subtree(number)])
            held.difference_update(subtree(number))
        elif held:
            some = chance.sample(sorted(held), min(5, len(held)))
            disk.update([replace(stored(each), last_used=2e9 + each) for each in some])
            disk.read(key_of(some[0]))
        for written in disk.poll():
            assert not written.error, written


if __name__ == "__main__":
    churn(Path(sys.argv[1]), int(sys.argv[2]))
