"""What the api tells of the knobs is what the library takes."""

from jsonschema import Draft202012Validator

from axformer.config import KNOBS, METHODS, Preset, make_config


def test_every_knob_is_listed_with_its_default_and_reason(client):
    knobs = {knob["name"]: knob for knob in client.get("/v1/knobs").json()["knobs"]}
    assert knobs.keys() == set(KNOBS)
    usual = {name: knob for name, knob in knobs.items() if not knob["paper_only"]}
    assert {name: knob["default"] for name, knob in usual.items() if "axformer" in knob["methods"]} == (
        make_config().model_dump(mode="json")
    )
    for method, config in METHODS.items():
        assert {name for name, knob in usual.items() if method in knob["methods"]} == set(config.model_fields)
    assert all(knob["reason"] for knob in knobs.values())


def test_presets_are_whole_and_fit_what_is_accepted(client):
    answer = client.get("/v1/knobs").json()
    assert list(answer["presets"]) == list(Preset)
    for name, preset in answer["presets"].items():
        assert preset == make_config(name).model_dump(mode="json")
        for knob in answer["knobs"]:
            if preset["method"] not in knob["methods"] or (knob["paper_only"] and name != Preset.PUBLISHED):
                assert knob["name"] not in preset
                continue
            assert list(Draft202012Validator(knob["accepts"]).iter_errors(preset[knob["name"]])) == []


def test_choices_and_ranges_are_given(client):
    knobs = {knob["name"]: knob["accepts"] for knob in client.get("/v1/knobs").json()["knobs"]}
    assert knobs["helped_reference"]["enum"] == ["current", "original"]
    assert (knobs["refine_margin"]["minimum"], knobs["refine_margin"]["maximum"]) == (1.0, 100.0)
