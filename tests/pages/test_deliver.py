"""The page of a job says where its files go, and how far that is."""

from store.repositories.handovers import ask, claim_handover, fail_handover, finish_handover
from store.session import session_scope

URI = "hf://acme/small"


def asked_for(stage, sessions):
    job_id = stage.succeeded({"plan.json": b"{}"})
    with session_scope(sessions) as session:
        ask(session, job_id, URI, b"locked")
    return job_id


def test_what_became_of_a_delivery_is_on_the_page(member, stage, sessions):
    job_id = asked_for(stage, sessions)
    assert f"The files will be put at <code>{URI}</code>" in member.get(f"/jobs/{job_id}").text
    with session_scope(sessions) as session:
        claimed = claim_handover(session, 60, most=5)
    assert f"The files are being put at <code>{URI}</code>" in member.get(f"/jobs/{job_id}").text
    with session_scope(sessions) as session:
        finish_handover(session, claimed, files=3, bytes=2048)
    assert f"are at <code>{URI}</code>." in member.get(f"/jobs/{job_id}").text


def test_a_failure_is_on_the_page_as_text_with_what_repeats_it(member, stage, sessions):
    job_id = asked_for(stage, sessions)
    with session_scope(sessions) as session:
        claimed = claim_handover(session, 60, most=5)
        fail_handover(session, claimed, {"code": "target_refused", "message": "no <b>way</b>"}, retry_in=None)
    text = member.get(f"/jobs/{job_id}").text
    assert "no &lt;b&gt;way&lt;/b&gt;" in text
    assert f"axformer deliver {job_id}" in text


def test_without_a_delivery_there_is_no_word_of_one(member, stage):
    assert "Delivery" not in member.get(f"/jobs/{stage.succeeded({'plan.json': b'{}'})}").text
