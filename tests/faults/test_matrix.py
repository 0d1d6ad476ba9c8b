"""Jobs of every kind, each hit in its middle; ``python -m tests.faults --matrix`` hits each kind with everything."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.faults.hits import HITS, hit, hit_delivery, undisturbed
from tests.faults.matrix import ANALYSIS, DELIVERY, EXPORT, NOTHING, TRAINING, matrix

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif("AXFORMER_TEST_FAULTS" not in os.environ, reason="make torture runs it, with all pairs"),
]
KINDS = {
    "kill -9 of the confined process": TRAINING,
    "kill -9 of the job's process": EXPORT,
}
"""The kind of job that each fault hits here; the others hit an analysis, which is quickest."""


def test_jobs_of_every_kind_survive_every_fault_of_the_stack() -> None:
    """All in one service: it takes longer to start than a job takes."""
    with tempfile.TemporaryDirectory(prefix="axformer-faults-") as made, matrix(Path(made)) as ready:
        expected = undisturbed(ready)
        scored = [hit_delivery(ready, expected[DELIVERY]["of"])]
        for what in HITS:
            kind = KINDS.get(what, ANALYSIS)
            scored.append(hit(ready, what, kind, expected[kind]))
        assert [one for one in scored if not one.is_equal] == [], ready.service.logs()
        ready.clean_twice()
        assert ready.left() == NOTHING, ready.service.logs()
