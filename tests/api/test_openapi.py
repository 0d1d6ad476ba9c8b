"""The OpenAPI document is valid, complete, and its examples fit its schemas."""

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from api.openapi import EXAMPLES

METHODS = ("get", "post", "put", "patch", "delete", "head")


@pytest.fixture
def document(client):
    return client.get("/openapi.json").json()


def operations(document):
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method} {path}", item[method]


def schema_errors(document, schema, value) -> list[str]:
    """What in a value does not fit a schema of the document."""
    whole = schema | {"components": document["components"]}
    return [error.message for error in Draft202012Validator(whole).iter_errors(value)]


def test_the_document_is_valid(document):
    assert document["openapi"].startswith("3.1")
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_the_routes_are_those_of_the_design(document):
    assert {name for name, _ in operations(document)} == {
        "post /v1/jobs",
        "get /v1/jobs",
        "post /v1/analyses",
        "get /v1/jobs/{job_id}",
        "delete /v1/jobs/{job_id}",
        "post /v1/jobs/cancel",
        "post /v1/jobs/{job_id}/cancel",
        "post /v1/jobs/{job_id}/pause",
        "post /v1/jobs/{job_id}/resume",
        "post /v1/jobs/{job_id}/retry",
        "post /v1/jobs/{job_id}/deliver",
        "get /v1/jobs/{job_id}/trace",
        "get /v1/jobs/{job_id}/path",
        "get /v1/jobs/{job_id}/path/{seq}/plan",
        "post /v1/jobs/{job_id}/path/{seq}/export",
        "get /v1/jobs/{job_id}/needed",
        "post /v1/jobs/{job_id}/labels",
        "get /v1/jobs/{job_id}/events",
        "get /v1/jobs/{job_id}/artifacts",
        "get /v1/jobs/{job_id}/artifacts/{name}",
        "head /v1/jobs/{job_id}/artifacts/{name}",
        "get /v1/jobs/{job_id}/deliveries",
        "post /v1/jobs/{job_id}/deliveries/{delivery_id}/redeliver",
        "post /v1/webhook-secrets",
        "get /v1/webhook-secrets",
        "delete /v1/webhook-secrets/{secret_id}",
        "post /v1/uploads",
        "get /v1/uploads/{upload_id}",
        "delete /v1/uploads/{upload_id}",
        "get /v1/queue",
        "get /v1/me",
        "get /v1/keys",
        "post /v1/keys",
        "post /v1/keys/{key_id}/rotate",
        "delete /v1/keys/{key_id}",
        "get /v1/audit",
        "get /v1/knobs",
        "get /v1/healthz",
        "get /v1/readyz",
        "get /v1/metrics",
    }


def test_every_operation_has_words_examples_and_problems(document, subtests):
    for name, operation in operations(document):
        with subtests.test(operation=name):
            assert operation["summary"]
            assert operation["description"]
            good = [code for code in operation["responses"] if code in ("200", "201", "202")]
            for code in good if not name.startswith("head") else []:
                for content in operation["responses"][code]["content"].values():
                    assert "example" in content or "examples" in content or content["schema"].get("format") == "binary"
            if "security" in operation:
                assert {"401", "503"} <= set(operation["responses"])
            for code, response in operation["responses"].items():
                if int(code) >= 400 and name != "get /v1/readyz":
                    content = response["content"]["application/problem+json"]
                    assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
                    assert schema_errors(document, content["schema"], content["example"]) == []


def test_examples_fit_their_schemas(document, subtests):
    used = set()
    for name, operation in operations(document):
        for response in operation["responses"].values():
            content = response.get("content", {}).get("application/json", {})
            for example in content.get("examples", {}):
                with subtests.test(operation=name, example=example):
                    used.add(example)
                    value = document["components"]["examples"][example]["value"]
                    assert schema_errors(document, content["schema"], value) == []
    assert used == set(EXAMPLES)


def test_every_body_has_an_example_that_fits(document, subtests):
    bodies = {name: operation["requestBody"] for name, operation in operations(document) if "requestBody" in operation}
    assert len(bodies) == 9
    for name, body in bodies.items():
        for content in body["content"].values():
            with subtests.test(operation=name):
                assert schema_errors(document, content["schema"], content["example"]) == []


def test_summaries_are_phrases(document):
    """Not what the framework makes of a function's name."""
    summaries = [operation["summary"] for _, operation in operations(document)]
    assert len(set(summaries)) == len(summaries)
    assert [text for text in summaries if text.istitle() or text.endswith(".")] == []


def test_the_posted_example_is_accepted_by_its_schema(document):
    schema = document["components"]["schemas"]["JobCreate"]
    assert len(schema["examples"]) == 1
    assert schema_errors(document, schema, schema["examples"][0]) == []


def test_real_answers_fit_the_schemas(api, document, stage, make_trial):
    job_id = stage.succeeded({"plan.json": b"{}"}, [make_trial(seq) for seq in range(3)])
    stage.running([], {"done": 1, "known": 5, "seconds": 1.0, "seconds_left": 4.0})
    stage.queued()
    for path in ("", "/{job_id}", "/{job_id}/trace", "/{job_id}/events", "/{job_id}/artifacts"):
        schema = document["paths"][f"/v1/jobs{path}"]["get"]["responses"]["200"]["content"]["application/json"][
            "schema"
        ]
        answer = api.get(f"/v1/jobs{path}".format(job_id=job_id)).json()
        assert schema_errors(document, schema, answer) == []
    for path in ("/v1/queue", "/v1/knobs", "/v1/healthz", "/v1/readyz"):
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert schema_errors(document, schema, api.get(path).json()) == []
