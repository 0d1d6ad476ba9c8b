"""The generated pages say what the cells say, from their files alone."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from transformers import AutoModel, BertConfig, MPNetConfig

from benchmarks.grids import compress, conditions, embeddings, evidence, rank, weights
from benchmarks.harness import read_cells
from benchmarks.pages import DOCUMENTS, PAGES, page, pictures
from benchmarks.tables import spread


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_cells_give(name: str) -> None:
    text = (DOCUMENTS / f"{name}.md").read_text(encoding="utf-8")
    assert text == page(name), "run `python -m benchmarks page`"
    for part in text.split("\n\n"):
        lines = part.splitlines()
        if lines[0].startswith("|"):
            assert len({line.count("|") for line in lines}) == 1, "every row has as many cells as its head"


def test_pictures_are_what_the_cells_give() -> None:
    for name, text in pictures().items():
        assert (DOCUMENTS / "images" / f"{name}.svg").read_text(encoding="utf-8") == text


def test_cells_that_do_not_tell_the_encoder_are_of_models_whose_encoder_is_known() -> None:
    for name, config in (
        ("minilm", BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)),
        ("mpnet-base", MPNetConfig()),
    ):
        with torch.device("meta"):
            layers = AutoModel.from_config(config).encoder.layer
        assert sum(one.numel() for one in layers.parameters()) == evidence.ENCODERS[name]
    assert {cell["model"] for cell in read_cells("evidence")} == set(evidence.ENCODERS)


def pass_cell(arm: str, seed: int, change: float, model: str = "minilm") -> dict[str, Any]:
    """A cell of a pass whose held-out loss and accuracy changed by so much, from 1.0 and 0.5."""
    difference = {"value": change, "interval": [change - 0.1, change + 0.1]}
    base = {"validation": {"loss": 1.0}, "test": {"loss": 1.0, "accuracy": 0.5}, "parameters": 100}
    report = {
        "base": base | {"encoder_parameters": 50},
        "pruned": base | {"test": {"loss": 1 + change, "accuracy": 0.5 + change}, "parameters": 90},
        "task": "classification",
        "comparison": {
            "validation": {"differences": {"loss": {"value": -0.2, "interval": [-0.3, -0.1]}}},
            "test": {"differences": {"loss": difference, "accuracy": difference}, "mcnemar": None},
        },
        "config": {"within_points": 2.0},
        "data": {"confirming": {"rows": 10}},
        "estimated_speedup": 1.25,
    }
    about = {"cell": f"rte-{model}-s{seed}-{arm}", "data": "rte", "model": model, "seed": seed, "arm": arm}
    return about | {"metric": "accuracy", "checkpoint": "0f", "report": report}


def rows_of(table: str) -> list[list[str]]:
    """The cells of a table without its head."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_seeds_are_put_together_with_their_spread_and_optimism_is_the_difference() -> None:
    cells = [pass_cell("paper", 0, 0.3), pass_cell("paper", 1, 0.1), pass_cell("published", 0, -0.2)]
    assert spread([0.3, 0.1], "+.4f") == "+0.2000 ± 0.1414"
    (row,) = rows_of(evidence.by_set([*cells, pass_cell("robust", 0, 0.0)]))
    assert row[3:] == ["2", "+20.00 ± 14.14 (1 worse)", "20.0%", "-20.00", "20.0%", "+0.00", "20.0%"]
    assert rows_of(evidence.optimism(cells)) == [
        ["`paper`", "2", "-20.0%", "+20.0%", "0", "1", "1", "20.0%"],
        ["`published`", "1", "-20.0%", "-20.0%", "1", "0", "0", "20.0%"],
    ]


def test_the_variance_of_the_seeds_is_that_before_and_after_the_pass() -> None:
    cells = [pass_cell("paper", seed, change) for seed, change in enumerate((0.0, 0.04))]
    before, after = rows_of(evidence.seeds(cells))[2:]
    assert before[1:] == ["before", "1", "2", "0.00", "0.00", "50.00", "50.00"]
    assert after[1:] == ["after", "1", "2", "8.00", "8.00", "54.00", "50.00"]


def test_the_encoder_of_an_unknown_model_is_not_guessed() -> None:
    cell = pass_cell("paper", 0, 0.1, model="another")
    cell["report"]["base"].pop("encoder_parameters")
    assert evidence.removed([cell]) == "–"


def form_of(change: float, times: float) -> dict[str, Any]:
    """What a form of a model on a path is worth."""
    return {"change": {"value": change}, "bytes": 1e7, "speed_1": {"times": times}, "speed_32": {"times": times / 2}}


def path_cell(arm: str, seed: int, path: Sequence[tuple[float, float]], kept: int = 0, **more: Any) -> dict[str, Any]:
    """A cell with these models: times fewer operations, and accuracy on held-out rows."""
    points = [
        {
            "element": f"encoder.{budget:g}" if index else None,
            "estimated_speedup": speed,
            "encoder_parameters": 1000 / speed,
            "test": {"accuracy": value},
            "kept": index == kept,
            "forms": {
                form: form_of(value - path[0][1], speed * times) for form, times in (("compact", 1), ("onnx_int8", 3))
            },
        }
        for (index, (speed, value)), budget in zip(enumerate(path), (1.0, *compress.BUDGETS), strict=False)
    ]
    change = path[kept][1] - path[0][1]
    difference = {"value": change, "interval": [change - 0.005, change + 0.005]}
    certificate = {"points": 1.0, "test": "exact", "asymptotic": False, "rows": 10 + seed, "passed": seed}
    report = {"path": points, "certificate": certificate, "seconds": 60.0}
    report |= {"comparison": {"test": {"differences": {"accuracy": difference}}}}
    about = {"cell": f"sst2-{seed}-{arm}", "data": "sst2", "model": "minilm", "arm": arm, "seed": seed}
    return about | {"metric": "accuracy", "checkpoint": "0f", "report": report} | more


def test_budgets_are_put_together_over_seeds_and_held_to_the_targets() -> None:
    models = [[(1.0, 0.8), (1.25, 0.8), (1.5, 0.8), (2.0, 0.8 - lost), (3.0, 0.78)] for lost in (0.01, 0.02)]
    cells = [path_cell("compress", seed, path) for seed, path in enumerate(models)]
    assert rows_of(compress.by_set(cells))[0][4:] == [
        "+0.00 ± 0.00",
        "+0.00 ± 0.00",
        "-1.50 ± 0.71",
        "-2.00 ± 0.00",
        "–",
    ]
    over = rows_of(compress.over_sets(cells))
    assert [row[4] for row in over] == [
        "–",
        "at most 0.5 lost: met",
        "at most 0 lost: **missed**",
        "at most 0.5 lost: **missed**",
    ]
    assert over[2][5:] == ["50%", "2.00x"]


def test_forms_are_put_together_over_sets_with_the_standard_error() -> None:
    path = [(1.0, 0.8), (1.25, 0.8), (1.5, 0.8), (2.0, 0.79)]
    cells = [path_cell("compress", 0, path), path_cell("compress", 1, [*path[:3], (2.0, 0.77)])]
    cells.append(path_cell("compress", 0, [*path[:3], (4.0, 0.8)], data="cola"))
    earlier = path_cell("compress", 2, path)
    for point in earlier["report"]["path"]:
        point.pop("forms")
    rows = rows_of(compress.frontier([*cells, earlier]))
    assert len(rows) == 8
    assert rows[0] == ["minilm", "nothing removed", "PyTorch", "2", "+0.00 ± 0.00", "+0.00", "1.0x", "0.5x", "10"]
    assert rows[-1] == ["minilm", "0.5", "ONNX int8", "2", "-1.00 ± 1.00", "-2.00", "8.0x", "4.0x", "10"]
    commands = rows_of(compress.what_to_run(cells))
    assert [row[1:] for row in commands] == [
        ["3.0x", "10", "+0.00 ± 0.00", "+0.00", "2"],
        ["8.0x", "10", "-1.00 ± 1.00", "-2.00", "2"],
    ]
    assert compress.pictures(cells)["frontier-minilm"].startswith("<svg")


def test_a_variant_on_another_checkpoint_is_marked() -> None:
    path = [(1.0, 0.8), (1.25, 0.7)]
    cells = [path_cell(arm, 0, path, checkpoint=digest) for arm, digest in (("earlier", "one"), ("contiguous", "two"))]
    assert [row[1] for row in rows_of(compress.variants(cells))] == [
        "compress, as measured before int8",
        "contiguous order†",
    ]


def test_ways_are_compared_at_the_same_number_of_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [
        path_cell("l1", 0, [(1.0, 0.8), (1.249, 0.7), (1.5, 0.6)]),
        path_cell("l1", 1, [(1.0, 0.9), (1.3, 0.7), (2.5, 0.6)]),
        path_cell("pass", 0, [(1.0, 0.8), (1.01, 0.8)]),
    ]
    (row,) = rows_of(rank.at_the_same_cost(cells))
    assert row == ["sst2", "L1", "2", "-15.00 ± 7.07", "-25.00 ± 7.07", "-30.00", "–"]


def test_embedders_are_shown_in_pytorch_and_int8_and_the_untouched_model_once() -> None:
    def embedder(arm: str, ndcg: float) -> dict[str, Any]:
        names = ("ndcg_10", "recall_10", "same_nearest", "old_index_ndcg_10", "spearman")
        about = {**dict.fromkeys(names, 80.0), "ms_1": 2.0, "ms_32": 30.0, "bytes": 20_000_000}
        models = [
            {**about, "budget": budget, "form": form, "ndcg_10": kept - lost}
            for budget, kept in ((1.0, 80.0), (0.5, ndcg))
            for form, lost in (("compact", 0.0), ("onnx_int8", 1.0))
        ]
        return {"cell": f"search-minilm-{arm}", "models": models}

    cells = [embedder("polish", 79.0), embedder("refit", 76.0)]
    rows = embeddings.by_model(cells).splitlines()[2:]
    told = [[part.strip() for part in row.split("|")[2:5]] for row in rows]
    assert told == [
        ["1", "80.0, 80.0", "80.0, 79.0"],
        ["0.5", "80.0, 80.0", "76.0, 75.0"],
        ["0.5, trained", "80.0, 80.0", "79.0, 78.0"],
    ]
    (picture,) = embeddings.pictures(cells).values()
    assert "0.95" in picture, "76 of 80"
    assert embeddings.pictures([]) == {}


def test_rerankers_are_shown_by_what_they_put_first() -> None:
    names = ("accuracy", "ndcg_10", "mrr_10", "same_first")
    about = {**dict.fromkeys(names, 90.0), "ms_1": 3.0, "ms_32": 60.0, "bytes": 90_000_000}
    models = [
        {**about, "budget": budget, "form": form, "same_first": 100 * budget, "ms_1": 3 * budget}
        for budget in (1.0, 0.5)
        for form in ("compact", "onnx_int8")
    ]
    head, _, whole, half = embeddings.rerankers([{"cell": "passages-minilm-s0-ranked", "models": models}]).splitlines()
    assert [part.strip() for part in head.split("|")[3:7]] == ["right one first", "nDCG@10", "MRR@10", "same one first"]
    assert [part.strip() for part in whole.split("|")[2:8:4]] == ["1", "100.0, 100.0"]
    assert [part.strip() for part in half.split("|")[6:8]] == ["50.0, 50.0", "2.0x, 2.0x"]


def test_conditions_are_summed_over_sets_without_the_one_whose_best_model_is_a_constant_answer() -> None:
    def cell(data: str, arm: str, change: float, error: float) -> dict[str, Any]:
        return pass_cell(arm, 0, change) | {"data": data, "calibrated": {"change": change, "error": error}}

    cells = [cell("wnli", "paper", 9.0, 0.1), cell("rte", "every", -0.2, 0.05)]
    cells += [cell("rte", "paper", 0.1, 0.06), cell("sst2", "paper", 0.3, 0.1)]
    told = {row[1]: row[2:6] for row in rows_of(conditions.over_sets(cells))}
    assert told == {"`paper`": ["2", "20.0%", "+0.2000", "0, 1"], "`every`": ["1", "20.0%", "-0.2000", "1, 0"]}
    assert rows_of(conditions.by_set(cells)) == [
        ["wnli", "minilm", "20.0%, +900.00", "–"],
        ["rte", "minilm", "20.0%, +10.00", "20.0%, -20.00"],
        ["sst2", "minilm", "20.0%, +30.00", "–"],
    ]


def test_weights_are_shown_at_what_the_deciding_rows_say_is_best() -> None:
    kept = [0.8, 0.9, 0.7, 0.6, *[0.5] * 9]
    path = [
        {"share": step * weights.STEP, "validation": {"accuracy": value}, "test": {"accuracy": value - 0.1}}
        for step, value in enumerate(kept)
    ]
    about = {"data": "rte", "model": "minilm", "seed": 0, "metric": "accuracy", "arm": "taylor"}
    found = rows_of(weights.table_four([pass_cell("paper", 0, 0.02)], [about | {"report": {"path": path}}]))
    assert found == [
        ["rte", "none (accuracy 70.00)", "–", "–", "–", "–", "–"],
        ["rte", "Taylor: abs(w dL/dw)", "5%", "+10.00", "-30.00", "-30.00", "-30.00"],
        ["rte", "the pass (`paper`)", "20.0%", "+2.00", "–", "–", "–"],
    ]
