"""The report that can be sent to others."""

from app.machine.check import Check
from app.machine.report import report_text
from tests.fakes_machine import some_findings


def test_checks_with_their_remedies_and_the_self_test_are_in_it() -> None:
    trials = [Check("remember", False, "it forgot", "send this")]
    text = report_text(some_findings(), {}, trials)
    assert "NOT  cache" in text and "-> run `inglenook doctor --repair`" in text
    assert "Self-test" in text and "NOT  remember" in text
    assert "Self-test" not in report_text(some_findings(), {})


def test_what_says_whose_machine_it_is_is_left_out() -> None:
    findings = some_findings()
    secret = findings.checks[0].message.split()[0]
    assert secret not in report_text(findings, {secret: "USER"})
