"""The audit log's chain: what it holds, that it never forks, and that whatever is changed later is found."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import Update, delete, func, select, update

from store.repositories.audit import (
    ChainFound,
    Operator,
    chain,
    check_chain,
    count_download,
    count_refusal,
    note,
)
from store.repositories.keys import Caller, Scope
from store.session import Sessions, session_scope
from store.tables.audit import AuditEntry
from store.tables.teams import Team

MOST = 100


def written(sessions: Sessions, team: Team, *objects: str) -> None:
    with session_scope(sessions) as session:
        note(session, Operator(team.id), "job.cancel", *objects)


def chained(sessions: Sessions) -> str | None:
    with session_scope(sessions) as session:
        return chain(session, MOST)


def found(sessions: Sessions, known: str | None = None) -> ChainFound:
    with session_scope(sessions) as session:
        return check_chain(session, known)


def number(found: ChainFound) -> int:
    """Number of the last entry."""
    return int(found.head.partition(":")[0])


def caller(team: Team, key_id: str = "0f", address: str = "192.0.2.1") -> Caller:
    return Caller(key_id, team.id, team.name, Scope.READ, address)


def test_entries_are_chained_in_turns_and_found_whole(sessions: Sessions, team: Team) -> None:
    assert found(sessions).head == f"0:{'0' * 64}"
    assert chained(sessions) is None
    written(sessions, team, "a", "b")
    assert found(sessions).waiting == 2
    head = chained(sessions)
    assert head is not None
    written(sessions, team, "c")
    assert chained(sessions) != head
    whole = found(sessions, head)
    assert (number(whole), whole.waiting, whole.broken) == (3, 0, None)


def at(link: int) -> Update:
    return update(AuditEntry).where(AuditEntry.link == link)


OTHER = bytes(range(32))
CHANGES = {
    "entry 1 was changed": at(1).values(address="198.51.100.1"),
    "entry 2 was changed": at(2).values(key_id="somebody"),
    "entry 3 was changed": at(3).values(object_id=None),
    "entry 4 was changed": at(4).values(times=2),
    "entry 5 was changed": at(5).values(created_at=AuditEntry.created_at + timedelta(microseconds=1)),
    "entry 6 was changed": at(6).values(sha256=OTHER),
    "entry 7 was changed": at(7).values(previous=OTHER),
    "entries 2 to 2 are gone": delete(AuditEntry).where(AuditEntry.link == 2),
    "entries 4 to 6 are gone": delete(AuditEntry).where(AuditEntry.link.in_((4, 5, 6))),
}


@pytest.mark.parametrize("said", CHANGES)
def test_the_first_entry_at_which_the_chain_breaks_is_told(sessions: Sessions, team: Team, said: str) -> None:
    written(sessions, team, *"abcdefgh")
    chained(sessions)
    with session_scope(sessions) as session:
        session.execute(CHANGES[said])
        session.execute(at(8).values(action="job.delete"))  # a later break is not what is told
    assert str(found(sessions).broken).startswith(said)


def test_a_chain_made_anew_or_cut_off_is_told_by_a_head_known_from_before(sessions: Sessions, team: Team) -> None:
    written(sessions, team, "a", "b", "c")
    head = chained(sessions)
    assert head is not None
    with session_scope(sessions) as session:
        session.execute(delete(AuditEntry).where(AuditEntry.link == 3))
    assert found(sessions).broken is None
    assert found(sessions, head).broken == "entry 3, which was there, and all after 2 are gone"
    with session_scope(sessions) as session:
        session.execute(update(AuditEntry).values(link=None, previous=None, sha256=None))
    written(sessions, team, "d")
    chained(sessions)
    assert found(sessions).broken is None
    assert found(sessions, head).broken == "entry 3 is not the one that was there"


def test_the_beginning_may_go_for_its_age_and_what_is_left_is_whole(sessions: Sessions, team: Team) -> None:
    written(sessions, team, "a", "b", "c")
    head = chained(sessions)
    with session_scope(sessions) as session:
        session.execute(delete(AuditEntry).where(AuditEntry.link < 3))
    left = found(sessions, head)
    assert (left.head, left.broken) == (head, None)
    with session_scope(sessions) as session:
        session.execute(at(3).values(address="198.51.100.1"))
    assert found(sessions).broken is not None


def test_writers_and_chainers_at_once_make_one_chain_and_wait_for_nobody(sessions: Sessions, team: Team) -> None:
    """An open transaction with an entry keeps neither other writers nor the chain waiting; its entry follows later."""
    with session_scope(sessions) as open_one:
        note(open_one, Operator(team.id), "job.cancel", "late")
        with ThreadPoolExecutor(6) as pool:
            writers = [pool.submit(written, sessions, team, f"{number}") for number in range(60)]
            chainers = [pool.submit(chained, sessions) for _ in range(20)]
            for one in writers + chainers:
                one.result(timeout=60)
        chained(sessions)
        assert (number(found(sessions)), found(sessions).broken) == (60, None)
    chained(sessions)
    assert (number(found(sessions)), found(sessions).broken) == (61, None)
    with session_scope(sessions) as session:
        last = session.scalars(select(AuditEntry.object_id).where(AuditEntry.link == 61)).one()
    assert last == "late"


def test_a_second_chainer_leaves_it_to_the_first(sessions: Sessions, team: Team) -> None:
    written(sessions, team, "a")
    with session_scope(sessions) as first:
        assert chain(first, MOST) is not None
        assert chained(sessions) is None
    assert number(found(sessions)) == 1


def test_downloads_of_an_hour_are_one_entry_for_each_key_address_and_content(sessions: Sessions, team: Team) -> None:
    with session_scope(sessions) as session:
        for _ in range(3):
            count_download(session, caller(team), "job_1/model.safetensors")
        count_download(session, caller(team), "job_1/report.json")
        count_download(session, caller(team, address="192.0.2.2"), "job_1/report.json")
        count_download(session, caller(team, key_id="1f"), "job_1/report.json")
        rows = session.scalars(select(AuditEntry).order_by(AuditEntry.id)).all()
        assert sum(row.times for row in rows) == 6
        assert {(row.key_id, row.address, row.object_id) for row in rows} == {
            ("0f", "192.0.2.1", "job_1/model.safetensors"),
            ("0f", "192.0.2.1", "job_1/report.json"),
            ("0f", "192.0.2.2", "job_1/report.json"),
            ("1f", "192.0.2.1", "job_1/report.json"),
        }


def test_what_is_counted_is_chained_after_its_hour_and_never_counts_on(sessions: Sessions, team: Team) -> None:
    """Also where the database's clock goes back into an hour that was over."""
    with session_scope(sessions) as session:
        count_refusal(session, team.id, "0f", "192.0.2.1")
        count_download(session, caller(team), "job_1/report.json")
        session.execute(update(AuditEntry).values(hour=func.date_trunc("hour", func.now()) + timedelta(hours=2)))
    assert chained(sessions) is None
    with session_scope(sessions) as session:
        session.execute(update(AuditEntry).values(hour=func.date_trunc("hour", func.now()) - timedelta(hours=1)))
    assert chained(sessions) is not None
    with session_scope(sessions) as session:
        session.execute(update(AuditEntry).values(hour=func.date_trunc("hour", func.now())))
        count_refusal(session, team.id, "0f", "192.0.2.9")
        count_download(session, caller(team), "job_1/report.json")
        times = select(AuditEntry.times).where(AuditEntry.link.is_not(None))
        assert session.scalars(times).all() == [1, 1]
    assert found(sessions).waiting == 2
