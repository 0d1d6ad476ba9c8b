"""The short version of ``python -m tests.contract``: some calls of every operation, and some chains of calls."""

from pathlib import Path

import pytest

from tests.contract.calls import ALL_PHASES, make_calls, settings_at

EXAMPLES = 3


@pytest.mark.slow
def test_every_answer_is_one_that_the_document_has(database_url: str, broker_url: str, tmp_path: Path) -> None:
    settings = settings_at(database_url, broker_url, tmp_path / "var")
    phases = [phase for phase in ALL_PHASES if phase != "coverage"]  # hundreds of calls, in the long version
    outcome = make_calls(settings, seed=0, examples=EXAMPLES, phases=phases)
    assert outcome.failures == {}
    assert outcome.calls > 100
    assert len(outcome.operations) > 20
    assert sum(count for status, count in outcome.statuses.items() if status < 300) > 10
