"""What is shown while the app does not answer."""

import time

from app.launch.link import Doing
from app.launch.status import Problem, Status


def test_steps_go_from_the_start_to_the_page() -> None:
    assert Status().steps() == [("Starting", False)]
    doing = Doing(model="Qwen", is_loading=True)
    assert Status(doing=doing).steps() == [
        ("Starting", True),
        ("Loading the model Qwen", False),
        ("Loading the page", False),
    ]
    assert Status(doing=Doing(model="Qwen")).steps()[1] == ("Loading the model Qwen", True)


def test_what_holds_it_up_is_said_instead() -> None:
    doing = Doing(waiting="Another command is at work")
    assert Status(doing=doing).steps() == [("Another command is at work", False)]


def test_the_time_since_the_start_counts() -> None:
    shown = Status(began=time.monotonic() - 2.5, crash="It crashed.", note="So it is.").as_json()
    assert 2.4 <= shown["starting"]["elapsed_s"] < 30
    assert shown["starting"]["crash"] == "It crashed."
    assert shown["starting"]["note"] == "So it is."


def test_a_problem_is_all_that_is_shown() -> None:
    problem = Problem(sentence="No room.", offers=("restart", "quit"))
    shown = Status(problem=problem, crash="It crashed.").as_json()
    offers = ["restart", "quit"]
    assert shown == {"problem": {"sentence": "No room.", "detail": "", "offers": offers}}


def test_an_app_that_was_closed_is_said_to_be() -> None:
    assert Status(is_over=True).as_json() == {"closed": True}
