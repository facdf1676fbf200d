"""Numbers that hold for a whole library, each under a name that belongs to one file.

Such as the rules that its index was made by, and how many vectors have ever been deleted.
"""

from sqlite_utils import Database as Tables


def noted(tables: Tables, name: str) -> int | None:
    """None: nobody has noted it yet."""
    found = tables.execute("select value from index_fact where name = ?", [name]).fetchone()
    return None if found is None else int(found[0])


def note(tables: Tables, name: str, value: int) -> None:
    """In the place of what was noted before."""
    tables.execute("insert or replace into index_fact(name, value) values (?, ?)", [name, value])


def count(tables: Tables, name: str, num: int) -> None:
    """So many more than were noted before."""
    note(tables, name, (noted(tables, name) or 0) + num)
