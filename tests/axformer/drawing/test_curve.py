"""The curve of a path shows every model where its change and its speed belong, and says which was kept."""

import random
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from axformer.drawing.curve import describe_path, path_curve
from axformer.errors import InputError
from axformer.scores.path_costs import costs_of
from axformer.wire.report import PathPoint
from tests.axformer.drawing.test_chart import assert_readable

SVG = "{http://www.w3.org/2000/svg}"


def some_path(seed: int, *data: str, models: int = 8) -> list[PathPoint]:
    """A path whose models get smaller and faster, with figures on these data."""
    chance = random.Random(seed)
    kept = chance.randrange(models)
    return [some_point(seq, chance, data, kept=seq == kept) for seq in range(models)]


def some_point(seq: int, chance: random.Random, data: tuple[str, ...], **changes: Any) -> PathPoint:
    figures = {name: {"f1": 0.5, "loss": chance.random(), "exact_match": chance.random()} for name in data}
    return PathPoint(
        seq=seq,
        element=f"layer.{seq}.ffn" if seq else None,
        loss=0.6 - seq / 100,
        confirming=figures.get("confirming"),
        test=figures.get("test"),
        parameters=1_000_000 - 50_000 * seq,
        encoder_parameters=500_000 - 50_000 * seq,
        operations=9_000 - 300 * seq,
        estimated_speedup=9_000 / (9_000 - 300 * seq),
        estimated_latency_ms=18 * (9_000 - 300 * seq) / 9_000,
        **changes,
    )


def points_of(text: str, data: str) -> list[tuple[float, float, str, bool]]:
    """Where the models of a line stand, what their tooltips say, and whether another beats them."""
    found = []
    for circle in ElementTree.fromstring(text).iter(f"{SVG}circle"):
        shade = circle.attrib["class"].split()
        told = circle.findtext(f"{SVG}title")
        if shade[0] == f"{data}-point" and told is not None:
            assert told.startswith(f"{circle.attrib['data-seq']}: ")
            found.append((float(circle.attrib["cx"]), float(circle.attrib["cy"]), told, "beaten" in shade))
    return found


@pytest.mark.parametrize("seed", range(10))
def test_every_model_stands_once_as_high_as_it_is_good_and_as_far_right_as_it_is_fast(seed: int) -> None:
    path = some_path(seed, "test", "confirming")
    text = path_curve(path)
    for data in ("test", "confirming"):
        points = points_of(text, data)
        values = [getattr(one, data)["exact_match"] for one in path]
        assert [told.split(":")[0] for _, _, told, _ in points] == [str(one.seq) for one in path]
        assert all(before[0] < after[0] for before, after in pairwise(points))
        order = sorted(range(len(path)), key=lambda place: values[place])
        heights = [points[place][1] for place in order]
        assert heights == sorted(heights, reverse=True)
        assert all(50 <= height <= 350 for height in heights)
    beaten = {int(told.split(":")[0]) for _, _, told, is_beaten in points_of(text, "test") if is_beaten}
    assert beaten == {model.point.seq for model in costs_of(path)[0].models if not model.is_best}


def test_it_tells_the_change_on_data_that_did_not_decide_else_of_the_loss() -> None:
    for data, name in ((("test", "confirming"), "held-out exact match"), (("confirming",), "confirming exact match")):
        assert name in describe_path(some_path(1, *data))
    alone = some_path(1)
    assert "deciding loss -11.67 %" in describe_path(alone)
    assert len(points_of(path_curve(alone), "deciding")) == len(alone)


def test_while_a_run_goes_on_no_model_is_marked() -> None:
    path = [point.model_copy(update={"kept": False}) for point in some_path(3, "test")]
    text = path_curve(path)
    assert "ring" not in {one.attrib.get("class") for one in ElementTree.fromstring(text).iter(f"{SVG}circle")}
    assert "this model" not in text


def test_the_model_that_was_kept_is_marked_and_told() -> None:
    path = some_path(3, "test")
    kept = next(one for one in path if one.kept)
    assert kept is not path[-1]
    told = f"this model, after trial {kept.seq}: {kept.estimated_speedup:.2f} times as fast"
    assert f"{told} with {kept.parameters / 1e6:.1%} of the parameters" in describe_path(path)
    assert kept.encoder_parameters is not None
    assert f"({kept.encoder_parameters / 5e5:.1%} of the encoder's)" in describe_path(path)
    text = path_curve(path)
    rings = [one for one in ElementTree.fromstring(text).iter(f"{SVG}circle") if one.attrib["class"] == "ring"]
    places = {
        (float(one.attrib["cx"]), float(one.attrib["cy"])) for one in rings if "cx" in one.attrib
    }  # not the legend's
    marked = {(x, y) for x, y, told, _ in points_of(text, "test") if told.startswith(f"{kept.seq}:")}
    assert marked == places


def test_a_path_of_one_model_is_drawn_and_none_at_all_is_refused() -> None:
    (untouched,) = some_path(0, models=1)
    assert len(points_of(path_curve([untouched]), "deciding")) == 1
    with pytest.raises(InputError, match="no path"):
        path_curve([])


def test_the_curve_is_told_in_words_and_has_a_light_and_a_dark_side() -> None:
    path = some_path(1, "test", "confirming")
    assert_readable(path_curve(path), "path", describe_path(path))
