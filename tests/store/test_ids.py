"""Identifiers are unique and sort by age."""

import re
import time
from uuid import RFC_4122

from store.ids import JOB_PREFIX, new_id, uuid7


def test_a_uuid_has_version_7_and_tells_its_time() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid7()
    after = time.time_ns() // 1_000_000
    assert (made.version, made.variant) == (7, RFC_4122)
    assert before <= made.int >> 80 <= after


def test_ids_are_unique_and_later_ones_sort_after_earlier_ones() -> None:
    earlier = {new_id(JOB_PREFIX) for _ in range(1000)}
    time.sleep(0.002)
    later = {new_id(JOB_PREFIX) for _ in range(1000)}
    assert len(earlier | later) == 2000
    assert max(earlier) < min(later)
    assert all(re.fullmatch("job_[0-9a-f]{32}", id) for id in earlier)
