"""What was found, in lines for a person."""

from dataclasses import replace

from app.machine.wording import cost_lines, kv_lines, lines_of
from tests.fakes_machine import COSTS, KV, some_findings


def test_everything_that_was_found_is_said() -> None:
    text = "\n".join(lines_of(some_findings()))
    for words in (
        "As it was on 2026-11-30 at 17:05",
        "NOT  cache",
        "the backend llama on Abacus 2",
        "2 x 30 layers x 3 KV heads x 64 x 2 bytes = 23,040 bytes for each token",
        "weighed 23,058 bytes",
        "4 fit into the context of 8,192, 21 into RAM (1 GB), 217 onto the disk (10 GB)",
        "reading 1,000 tokens takes 10.0 s of processor time and 0.05 Wh",
        "Memory is read at 20 GB/s",
        "8.0 billion parameters does not fit",
    ):
        assert words in text, words


def test_what_is_not_known_is_not_said() -> None:
    findings = replace(some_findings(), kv=None, costs=None, roofline=None, plan=None, rates=None)
    text = "\n".join(lines_of(findings))
    assert "formula" not in text and "processor time" not in text and "possible" not in text
    assert "nothing, before what is wrong above is put right" in text


def test_what_could_not_be_weighed_has_its_reason() -> None:
    (_, weighed, _) = kv_lines(replace(KV, weighed_bytes_per_token=None))
    assert "no memory is kept" in weighed


def test_layers_that_keep_a_state_make_the_formula_a_bound_that_is_not_weighed() -> None:
    first, second = kv_lines(replace(KV, is_exact=False, weighed_bytes_per_token=None))
    assert "at most: some of its layers keep one state" in first and "weighed" not in second


def test_a_machine_that_does_not_tell_its_energy_says_so_once() -> None:
    silent = replace(
        COSTS,
        reading=replace(COSTS.reading, joules=None),
        writing=replace(COSTS.writing, joules=None),
    )
    assert cost_lines(silent)[-1] == "how much energy that is, this machine does not tell"
    assert len(cost_lines(COSTS)) == 2


def test_a_model_that_keeps_a_state_has_no_figure_for_a_token() -> None:
    (line,) = kv_lines(replace(KV, bytes_per_token=0, is_exact=False))
    assert "one state for a conversation" in line
