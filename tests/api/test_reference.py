"""The document for readers."""

import shlex

import pytest

from api.reference import Reader, Route, Shape
from docs.hooks.reference import document


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(document())


@pytest.fixture(scope="module")
def routes(reader: Reader) -> dict[str, Route]:
    return {route.name: route for subject in reader.subjects() for route in subject.routes}


@pytest.fixture(scope="module")
def shapes(reader: Reader) -> dict[str, Shape]:
    return {shape.name: shape for shape in reader.shapes()}


def kinds(fields) -> dict[str, str]:
    return {field.name: "".join(piece.text for piece in field.kind) for field in fields}


def test_a_route_says_what_it_takes(routes):
    post = routes["post-jobs"]
    (body,) = post.bodies
    assert (post.method, post.path, post.scope) == ("POST", "/v1/jobs", "write")
    assert body.media_type == "application/json"
    assert '"checkpoint": "hf://acme/bert-reviews@main"' in body.example
    assert kinds(body.fields)["test"] == "DataRef or null"
    assert kinds(body.fields)["forms"] == "list of `compact`, `stock`, `zeroed`, `onnx`, `onnx_int8`"
    assert [field.name for field in body.fields if field.is_needed] == ["name", "checkpoint", "validation"]
    assert [answer.status for answer in post.answers if answer.is_good] == ["202"]
    assert '"state": "running"' in post.example
    assert routes["get-knobs"].scope == ""


def test_a_shape_of_alternatives_has_the_fields_of_the_object(shapes):
    assert list(kinds(shapes["CheckpointRef"].fields)) == ["uri", "sha256"]
    assert shapes["CheckpointRef"].is_sent
    assert shapes["Columns"].is_sent, "a part of a part of what is sent"
    assert not shapes["JobRead"].is_sent


def test_curl_is_told_what_the_route_needs(routes):
    key = '-H "Authorization: Bearer $KEY"'
    assert routes["get-jobs-job-id"].curl == f'curl {key} "$API/jobs/$JOB_ID"'
    assert routes["delete-jobs-job-id"].curl == f'curl -X DELETE {key} "$API/jobs/$JOB_ID"'
    assert routes["post-jobs-job-id-cancel"].curl == f'curl -X POST {key} "$API/jobs/$JOB_ID/cancel"'
    assert routes["post-uploads"].curl == f'curl {key} -F file=@model.tar.gz "$API/uploads"'
    assert routes["get-knobs"].curl == 'curl "$API/knobs"'
    assert routes["post-keys"].curl.startswith(f'curl {key} --json \'{{"name": ')
    assert "-OJ" in shlex.split(routes["get-jobs-job-id-artifacts-name"].curl)
