"""Sentence embedders: read, made smaller without a label, and written as what sentence-transformers loads."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel

import axformer
from axformer.architectures.embedder import SPEC, TOKENS, VECTOR, Dense, Embedding
from axformer.architectures.registry import ARCHITECTURES, architecture_of
from axformer.config import make_config
from axformer.data.batches import Samples
from axformer.data.columns import OWN_ANSWERS
from axformer.data.reading import rows_of
from axformer.errors import CheckpointError, ConfigError, DataError
from axformer.forms.facts import facts_of
from axformer.forms.form import Form
from axformer.forms.kinds import COMPACT, KINDS, ONNX, STOCK, ZEROED
from axformer.forms.make import Finished, loaded_form, make_forms
from axformer.forms.onnx_int8 import copy_beside
from axformer.intake.checkpoint import Checkpoint, from_memory, load_checkpoint
from axformer.intake.dataset import prepare, prepare_inputs
from axformer.model.compact import compact
from axformer.model.masking import masked
from axformer.model.operations import Operations
from axformer.model.parameters import ParameterCount
from axformer.plan.blocks import blocks_of_layer
from axformer.plan.plan import Plan
from axformer.repair.least_squares import refit
from axformer.repair.refit import Calibration, apply_refit, can_refit, matrix_of, refit_plan
from axformer.reporting.deploy_table import deployables
from axformer.run import PruningRun
from axformer.scores.measured import measure
from axformer.tasks.embedding import Search, SentenceEmbedding, gains, overlap
from axformer.wire.run import read_run
from tests.family_cases import some_plan
from tests.plain import PlainEvaluator
from tests.tiny_families import DIMENSIONS, tiny_family_config, tiny_family_tokenizer
from tests.tiny_models import save_tiny_embedder, tiny_rows, write_rows

MODES = ("mean", "cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len_tokens")
TEXTS = [row["text"] for row in tiny_rows(60)]
CONFIG = make_config("smallest", {"max_length": 24, "calibrate_rows": 30})
families = pytest.mark.parametrize("family", sorted(ARCHITECTURES))


def embedder(family: str, **spec: Any) -> Any:
    """A tiny embedder with random weights."""
    config = tiny_family_config(family)
    setattr(config, SPEC, Embedding.model_validate({"pooling": ("mean",), **spec}).model_dump())
    torch.manual_seed(0)
    return architecture_of(family).embedder.model_class(config).eval()


def checkpoint_of(family: str, **spec: Any) -> Checkpoint:
    return from_memory(embedder(family, **spec), tiny_family_tokenizer(family))


def vectors_of(model: Any, checkpoint: Checkpoint, texts: list[str]) -> torch.Tensor:
    with torch.inference_mode():
        return model(**checkpoint.tokenizer(texts, padding=True, return_tensors="pt"))[VECTOR]


@families
def test_vectors_are_the_same_masked_and_removed_and_in_any_batch(family: str) -> None:
    mode = MODES[sorted(ARCHITECTURES).index(family) % len(MODES)]
    tanh = "torch.nn.modules.activation.Tanh"
    dense = Dense(in_features=2 * DIMENSIONS.hidden_size, out_features=24, bias=True, activation_function=tanh)
    checkpoint = checkpoint_of(family, pooling=(mode, "mean"), normalize=True, dense=[dense.model_dump()])
    data = prepare(rows_of([{"text": text} for text in TEXTS[:20]]), checkpoint, CONFIG)
    assert data.samples.encoded.labels_as == OWN_ANSWERS
    for plan in (Plan.full(DIMENSIONS), some_plan(1)):
        small = compact(checkpoint.model, checkpoint.architecture, plan)
        removed = torch.stack(list(measure(small, checkpoint.task, data.samples).answers))
        with masked(checkpoint.model, checkpoint.architecture, plan):
            alone = [vectors_of(checkpoint.model, checkpoint, [text])[0] for text in TEXTS[:20]]
        torch.testing.assert_close(removed, torch.stack(alone), rtol=1e-4, atol=1e-5)
        plain = PlainEvaluator(checkpoint.model, checkpoint.architecture, checkpoint.task, data.samples)
        torch.testing.assert_close(
            measure(small, checkpoint.task, data.samples).losses, plain.losses(plan), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(("own", "tokenizers", "told"), [(9, None, 9), (None, 12, 12), (None, None, 64)])
def test_the_facts_beside_a_graph_say_where_a_text_is_cut(own: int | None, tokenizers: int | None, told: int) -> None:
    checkpoint = checkpoint_of("bert", max_length=own)
    if tokenizers is not None:
        checkpoint.tokenizer.model_max_length = tokenizers
    facts = facts_of(checkpoint.model, checkpoint.tokenizer, checkpoint.padding, ("input_ids",), (VECTOR,))
    assert facts.max_length == told
    rows = rows_of([{"text": f"{text} {' '.join(['word1'] * 80)}"} for text in TEXTS[:12]])
    cut = [
        len(ids) for ids in prepare_inputs(None, rows, checkpoint, make_config()).samples.encoded.features["input_ids"]
    ]
    assert set(cut) == {told}, "as what is measured is cut"


def seen_by(model: Any, checkpoint: Checkpoint, samples: Samples) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What enters the second layer, and its attention's output projection, batch by batch."""
    architecture, inner, outer = checkpoint.architecture, [], []
    layer = architecture.layers(model)[1]

    def see(x: torch.Tensor) -> torch.Tensor:
        inner.append(x)
        return x

    end = architecture.attention.weights(layer).watch(see)
    hook = layer.register_forward_pre_hook(
        lambda _, given, named: outer.append((*given, *named.values())[0]), with_kwargs=True
    )
    with torch.inference_mode():
        for batch in samples.batches:
            model(**batch.inputs)
    hook.remove()
    end()
    first = architecture.token_axis == 0
    return [(h.transpose(0, 1), x.transpose(0, 1)) if first else (h, x) for h, x in zip(outer, inner, strict=True)]


@families
def test_the_target_of_a_refit_is_corrected_by_what_has_moved_below(family: str) -> None:
    checkpoint = checkpoint_of(family)
    model, architecture = checkpoint.model, checkpoint.architecture
    if not can_refit(model, architecture):
        pytest.skip("its layers share their weights")
    samples = prepare(
        rows_of([{"text": f"{text} word{i % 60}"} for i, text in enumerate(TEXTS)]), checkpoint, CONFIG
    ).samples
    full = Plan.full(checkpoint.dimensions)
    plan = Plan(layers=(some_plan(1).layers[0], *full.layers[1:]))
    assert plan.layers[0] != full.layers[0]
    fits = refit_plan(model, architecture, samples, plan)
    small = compact(model, architecture, plan)
    apply_refit(small, architecture, plan, fits)
    (block, _) = blocks_of_layer(1)
    weights = architecture.attention.weights(architecture.layers(model)[1])
    matrix, bias = matrix_of(weights), None if weights.bias is None else weights.bias.detach()
    plain = Calibration(samples)
    both = (seen_by(one, checkpoint, samples) for one in (model, small))
    for batch, (hidden, x), (moved, given) in zip(samples.batches, *both, strict=True):
        plain.add(batch, given, torch.nn.functional.linear(x, matrix, bias) + hidden - moved)
    wanted = refit(matrix, *plain.sums, has_bias=bias is not None)
    assert wanted.ridge == fits[block].ridge
    torch.testing.assert_close(fits[block].weight, wanted.weight.float(), rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_embedder(tmp_path_factory.mktemp("embedder"))


def encoded_by_the_library(directory: Path, texts: list[str], **options: Any) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    return np.asarray(
        SentenceTransformer(str(directory), device="cpu").encode(texts, show_progress_bar=False, **options)
    )


def test_a_result_loads_in_sentence_transformers_with_the_same_vectors(written: Path, tmp_path: Path) -> None:
    rows = [{"text": f"{text} word{index % 60} word{index % 7}"} for index, text in enumerate(TEXTS * 2)]
    data = write_rows(tmp_path / "rows.jsonl", rows)
    asked = {
        "checkpoint": str(written),
        "unlabelled": str(data),
        "goal": "operations=1.5",
        "forms": ["compact"],
        "config": {"calibrate_rows": 40, "budgets": [0.6], "table_rows": 20},
    }
    run = PruningRun.open(read_run(asked))
    run.look()
    trials = list(run.trials())
    report = run.publish(tmp_path / "result", asked["forms"])
    assert {form["name"] for form in report["forms"] if form["made"]} == set(asked["forms"])
    assert report["task"] == "embedding"
    assert report["base"]["unlabelled"]["same_nearest"] == 1.0
    assert 0.0 < report["pruned"]["unlabelled"]["same_nearest"] < 1.0
    assert report["pruned"]["operations"] < report["base"]["operations"]

    texts = [f" {text} " for text in TEXTS[:11]] + [" ".join(TEXTS[:8])]
    data = prepare(rows_of([{"text": text} for text in texts]), load_checkpoint(written), CONFIG)
    whole = torch.stack(data.samples.encoded.labels).numpy()
    np.testing.assert_allclose(whole, encoded_by_the_library(written, texts), atol=1e-5)
    small = run.model()
    found = torch.stack(list(measure(small, SentenceEmbedding(small.config), data.samples).answers)).numpy()
    assert np.abs(found - whole).max() > 1e-3
    np.testing.assert_allclose(found, encoded_by_the_library(tmp_path / "result" / "model", texts), atol=1e-5)
    again = PruningRun.open(read_run(asked))
    resumed = list(again.trials(trials[: len(trials) // 2]))
    assert [trial.loss for trial in resumed] == [trial.loss for trial in trials]
    kept = json.loads((tmp_path / "result" / "model" / "config_sentence_transformers.json").read_text())
    assert kept["prompts"] == {"query": "word1 word2 ", "document": "word3 ", "all": "word4 "}


def test_a_polish_brings_vectors_nearer_to_the_untouched_model(written: Path, tmp_path: Path) -> None:
    rows = [{"text": f"{text} word{index % 60} word{index % 7}"} for index, text in enumerate(TEXTS * 4)]
    data = str(write_rows(tmp_path / "rows.jsonl", rows))
    losses = []
    for epochs in (0, 2):
        knobs = {"method": "compress", "within_points": None, "confirm": 0, "budgets": [0.5], "polish": epochs}
        run = PruningRun.open(read_run({"checkpoint": str(written), "validation": data, "config": knobs}))
        losses.append([trial.loss for trial in run.trials()][-1])
    assert losses[1] < losses[0]


def save_with_dense(directory: Path, family: str) -> Path:
    """A directory as sentence-transformers writes it, with two layers behind the pooling."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    torch.manual_seed(0)
    AutoModel.from_config(tiny_family_config(family)).save_pretrained(directory / family)
    tiny_family_tokenizer(family).save_pretrained(directory / family)
    chain = [modules.Transformer(str(directory / family), max_seq_length=20), modules.Pooling(32, pooling_mode="mean")]
    chain += [modules.Dense(32, 48), modules.Dense(48, 40, bias=False, activation_function=torch.nn.GELU())]
    made = SentenceTransformer(modules=[*chain, modules.Normalize()], device="cpu")
    made.save(str(directory / "made"), create_model_card=False)
    return directory / "made"


@pytest.fixture(scope="module")
def with_dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_with_dense(tmp_path_factory.mktemp("dense"), "bert")


def test_layers_behind_the_pooling_lie_outside_of_the_encoder(with_dense: Path) -> None:
    checkpoint, plan = load_checkpoint(with_dense), Plan.full(DIMENSIONS)
    plain = checkpoint_of("bert")
    weights, biases = 32 * 48 + 48 * 40, 48
    counts = [ParameterCount(one.model, one.architecture) for one in (checkpoint, plain)]
    assert counts[0].encoder(plan) == counts[1].encoder(plan)
    assert counts[0].left(plan) == counts[1].left(plan) + weights + biases
    lengths = torch.tensor([3, 5])
    operations = [
        Operations(one.model, one.architecture, pooled=False, lengths=lengths).left(plan) for one in (checkpoint, plain)
    ]
    assert operations[0] - operations[1] == 2 * weights * len(lengths)
    assert checkpoint.task.numbers == 40
    files = [
        with_dense / name for name in ("model.safetensors", "2_Dense/model.safetensors", "3_Dense/model.safetensors")
    ]
    assert checkpoint.bytes == sum(file.stat().st_size for file in files)
    assert checkpoint.sha256 != load_checkpoint(with_dense.parent / "bert", pooling="mean").sha256


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "distilbert", "xlnet"])
def test_layers_behind_the_pooling_are_in_every_form(family: str, tmp_path: Path) -> None:
    from sentence_transformers.sentence_transformer import modules

    made = save_with_dense(tmp_path, family)
    checkpoint = load_checkpoint(made)
    data = prepare(rows_of([{"text": text} for text in TEXTS[:12]]), checkpoint, CONFIG)
    whole = torch.stack(data.samples.encoded.labels)
    np.testing.assert_allclose(whole, encoded_by_the_library(made, TEXTS[:12]), atol=1e-5)
    plan = Plan.full(checkpoint.dimensions).dropping((1,))
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    finished = Finished(checkpoint, plan, small, data.samples)
    names = (STOCK, COMPACT, ZEROED, ONNX)
    forms = make_forms(finished, names, tmp_path)
    assert [form.name for form in forms if isinstance(form, Form)] == list(names)
    expected = torch.stack(list(measure(small, checkpoint.task, data.samples).answers))
    assert float((expected - whole).abs().max()) > 1e-3
    for name in (STOCK, COMPACT, ZEROED):
        directory = tmp_path / KINDS[name].directory
        np.testing.assert_allclose(expected, encoded_by_the_library(directory, TEXTS[:12]), atol=1e-5)
        assert not [one for one in load_file(directory / "model.safetensors") if "behind" in one]
        again = KINDS[name].load(directory, "cpu")
        torch.testing.assert_close(
            torch.stack(list(measure(again, checkpoint.task, data.samples).answers)), expected, rtol=1e-4, atol=1e-5
        )
    again = load_checkpoint(tmp_path / "stock").model
    torch.testing.assert_close(dict(again.named_parameters()), dict(small.named_parameters()), rtol=0, atol=0)
    session = onnxruntime.InferenceSession(tmp_path / "hub" / "onnx" / "model.onnx")
    inputs = checkpoint.tokenizer(TEXTS[0], return_tensors="np")
    vectors, tokens = session.run([VECTOR, TOKENS], {one.name: inputs[one.name] for one in session.get_inputs()})
    np.testing.assert_allclose(expected[:1], vectors, atol=1e-5)
    copy_beside(tmp_path / "hub", tmp_path / "int8")
    features = {"token_embeddings": torch.tensor(tokens), "attention_mask": torch.tensor(inputs["attention_mask"])}
    for place, kind in enumerate((modules.Pooling, modules.Dense, modules.Dense, modules.Normalize), start=1):
        features = kind.load(str(tmp_path / "int8"), f"{place}_{kind.__name__}")(features)
    torch.testing.assert_close(features[VECTOR], expected[:1], rtol=0, atol=1e-5)


def test_questions_and_passages_get_the_prompts_of_queries_and_documents(written: Path) -> None:
    checkpoint = load_checkpoint(written)
    rows = [{"question": text, "context": f"{text} word9"} for text in TEXTS[:12]]
    data = prepare(rows_of(rows), checkpoint, CONFIG)
    vectors = torch.stack(data.samples.encoded.labels).numpy()
    by_prompt = {"query": [row["question"] for row in rows], "document": [row["context"] for row in rows]}
    for start, (name, texts) in enumerate(by_prompt.items()):
        np.testing.assert_allclose(
            vectors[start::2], encoded_by_the_library(written, texts, prompt_name=name), atol=1e-5
        )
    figures = measure(checkpoint.model, checkpoint.task, data.samples).figures
    of_pairs = {"ndcg_10", "recall_10", "old_index_ndcg_10"}
    assert set(figures) == {"loss", "same_nearest", "same_10", "old_index_same_10"} | of_pairs
    assert figures["loss"] == pytest.approx(0.0, abs=1e-6)
    assert figures["old_index_ndcg_10"] == figures["ndcg_10"]
    assert figures["old_index_same_10"] == 1.0


def test_new_queries_search_an_index_of_old_vectors() -> None:
    checkpoint = checkpoint_of("bert")
    data = prepare(rows_of([{"question": text, "context": f"{text} word9"} for text in TEXTS[:30]]), checkpoint, CONFIG)
    encoded, task = data.samples.encoded, checkpoint.task
    before, noise = torch.stack(encoded.labels), torch.randn(60, 32, generator=torch.Generator().manual_seed(0))
    after = before + 0.3 * before.norm(dim=-1, keepdim=True) * noise / noise.norm(dim=-1, keepdim=True)
    mixed = before.clone()
    mixed[::2] = after[::2]  # queries of the new model, passages of the old one
    figures = task.metrics(task.statistics(list(after), encoded))
    expected = task.metrics(task.statistics(list(mixed), encoded))
    assert figures["old_index_same_10"] == expected["same_10"] != figures["same_10"]
    assert figures["old_index_ndcg_10"] == expected["ndcg_10"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("goal", "texts", "expected"),
    [
        ("within-points=10", "pairs", ("betting", "nDCG@10", 0)),
        ("within-points=10", "scored", ("delta_method", "spearman", 0)),
        ("same-answers=50", "pairs", ("exact", "same nearest", 60)),
        ("within-points=40", "single", ("exact", "same nearest", 60)),
    ],
)
def test_points_of_pairs_are_those_of_finding_the_partner(
    written: Path, tmp_path: Path, goal: str, texts: str, expected: tuple[str, str, int]
) -> None:
    words = [row["text"] for row in tiny_rows(120, seed=3)]
    pairs = [{"text": f"word{n % 50} {text}", "text_pair": f"{text} word{n % 50}"} for n, text in enumerate(words)]
    scored = [pair | {"label": n % 6} for n, pair in enumerate(pairs)]
    single = [{"text": row["text"]} for row in pairs]
    kinds: dict[str, Any] = {"pairs": pairs, "scored": scored, "single": single}
    write_rows(tmp_path / "rows.jsonl", kinds[texts])
    asked = {"checkpoint": str(written), "unlabelled": str(tmp_path / "rows.jsonl"), "goal": goal, "forms": ["compact"]}
    run = PruningRun.open(read_run({**asked, "config": {"budgets": [0.95, 0.9]}}))
    assert not any("inputs decide" in note for note in run.notes)
    for _ in run.trials():
        pass
    report = run.publish(tmp_path / "small", ["compact", "onnx_int8"])
    certificate = report["certificate"]
    assert (certificate["test"], certificate["metric"], certificate["unlabelled"]) == expected
    assert certificate["rows"] == 60
    if expected[0] != "exact":
        assert report["judged"]["data"] == "confirming"
        measured = "ndcg_10" if texts == "pairs" else "spearman"
        assert all(measured in point["confirming"] for point in report["path"])
        tested = next(form for form in report["forms"] if form["name"] == "onnx_int8")
        assert tested["certificate"]["metric"] == expected[1]
        deployed = deployables(report)
        assert deployed is not None
        assert deployed.what == f"confirming {expected[1]}"


def test_pairs_with_scores_are_measured_by_spearman() -> None:
    checkpoint = checkpoint_of("bert")
    rows = [{"text": text, "text_pair": TEXTS[-place], "label": place / 7} for place, text in enumerate(TEXTS[:30], 1)]
    data = prepare(rows_of(rows), checkpoint, CONFIG)
    figures = measure(checkpoint.model, checkpoint.task, data.samples).figures
    from scipy.stats import spearmanr

    vectors = torch.stack(data.samples.encoded.labels)
    near = torch.nn.functional.cosine_similarity(vectors[::2], vectors[1::2])
    assert figures["spearman"] == pytest.approx(spearmanr(near, [row["label"] for row in rows]).statistic)
    named = prepare(rows_of([row | {"label": "yes"} for row in rows]), checkpoint, CONFIG)
    assert "not read" in named.samples.encoded.notes[0]


def test_texts_with_classes_are_measured_by_a_linear_probe() -> None:
    checkpoint = checkpoint_of("bert")
    rows = [{"text": text, "label": ("no", "yes")[place % 2]} for place, text in enumerate(TEXTS[:30])]
    data = prepare(rows_of(rows), checkpoint, CONFIG)
    encoded, task = data.samples.encoded, checkpoint.task
    assert 0.0 <= measure(checkpoint.model, task, data.samples).figures["probe_accuracy"] <= 1.0
    told = [vector + 100.0 * (place % 2) for place, vector in enumerate(encoded.labels)]
    assert task.metrics(task.statistics(told, encoded))["probe_accuracy"] == 1.0
    other = prepare(rows_of([row | {"label": place} for place, row in enumerate(rows)]), checkpoint, CONFIG)
    assert "not read" in other.samples.encoded.notes[0]
    assert "probe_accuracy" not in measure(checkpoint.model, task, other.samples).figures


def test_neighbours_are_those_of_a_plain_search() -> None:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(40, 5, generator=generator)
    search = Search(list(range(40)), list(range(40)), list(range(40)), is_itself=True)
    for measure_, near in (
        ("cosine", lambda one: torch.nn.functional.cosine_similarity(vectors, one[None])),
        ("dot", lambda one: vectors @ one),
        ("euclidean", lambda one: -(vectors - one).norm(dim=-1)),
    ):
        found = search.nearest(vectors, measure_)
        for row in range(40):
            order = [place for place in near(vectors[row]).argsort(descending=True).tolist() if place != row]
            assert found[row].tolist() == order[:10]
    first, second = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[3, 9, 1], [7, 8, 0]])
    assert overlap(first, second).tolist() == pytest.approx([2 / 3, 0.0])
    assert gains(first, [2, 9]).tolist() == pytest.approx([1 / np.log2(3), 0.0])


def test_too_few_texts_are_refused() -> None:
    checkpoint = checkpoint_of("bert")
    data = prepare(rows_of([{"text": text} for text in TEXTS[:10]]), checkpoint, CONFIG)
    with pytest.raises(DataError, match=r"^10 different texts are too few"):
        _ = measure(checkpoint.model, checkpoint.task, data.samples).table


def changed(written: Path, place: Path, name: str, content: Any) -> Path:
    shutil.copytree(written, place)
    (place / name).write_text(json.dumps(content))
    return place


TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
DENSE = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}
NORMALIZE = {"idx": 3, "name": "3", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("modules.json", [TRANSFORMER, POOLING | {"type": "modeling.Own"}], "code of its own"),
        ("modules.json", [TRANSFORMER | {"type": "sentence_transformers.models.Asym"}], "asymmetric"),
        ("modules.json", [TRANSFORMER, DENSE | {"path": "1_Pooling"}], "its modules are Transformer, Dense"),
        ("modules.json", [TRANSFORMER, POOLING, NORMALIZE, DENSE], "in this order"),
        ("modules.json", [TRANSFORMER, POOLING, DENSE, DENSE], "'2_Dense' twice"),
        (
            "modules.json",
            [TRANSFORMER, POOLING, DENSE | {"path": "2_Normalize"}],
            "2_Normalize holds no model.safetensors",
        ),
        ("modules.json", [TRANSFORMER, POOLING | {"type": "sentence_transformers.SpladePooling"}], "sparse"),
        ("modules.json", [TRANSFORMER, POOLING | {"path": "../other"}], "no directory in it"),
        ("modules.json", [POOLING], "its modules are Pooling"),
        ("modules.json", {"a": 1}, "cannot be read"),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}, "no way to pool"),
        ("1_Pooling/config.json", {"pooling_mode": "attention"}, "pooling"),
        ("1_Pooling/config.json", {"pooling_mode": "mean", "include_prompt": False}, "include_prompt"),
        ("config_sentence_transformers.json", {"default_prompt_name": "other"}, "'other' is not among"),
        ("config_sentence_transformers.json", {"similarity_fn_name": "manhattan"}, "similarity"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case"),
    ],
)
def test_modules_that_cannot_be_kept_are_refused_in_one_line(
    written: Path, tmp_path: Path, name: str, content: Any, said: str
) -> None:
    with pytest.raises(CheckpointError, match=said) as refused:
        load_checkpoint(changed(written, tmp_path / "changed", name, content))
    assert "\n" not in str(refused.value)


WEIGHT = torch.zeros(48, 32)


@pytest.mark.parametrize(
    ("changes", "weights", "said"),
    [
        ({"activation_function": "modeling.Own"}, None, "'activation_function': .*modeling.Own"),
        ({"activation_function": "torch.nn.modules.activation.PReLU"}, None, "PReLU"),
        ({"module_input_name": "token_embeddings"}, None, "module_input_name"),
        ({"module_output_name": "other"}, None, "module_output_name"),
        ({"use_residual": True}, None, "use_residual"),
        ({"sca\nle": 2}, None, "sca"),
        ({"bias": "yes"}, None, "bias"),
        ({"out_features": 47}, None, "holds other weights"),
        ({"in_features": 0}, None, "in_features"),
        (
            {"in_features": 31},
            {"linear.weight": WEIGHT[:, 1:], "linear.bias": WEIGHT[:, 0]},
            "takes 31 numbers and gets 32",
        ),
        ({}, {"linear.weight": WEIGHT}, "holds other weights"),
        ({}, {"linear.weight": WEIGHT / 0, "linear.bias": WEIGHT[:, 0]}, r"not numbers, in behind.0.linear.weight"),
        ({}, {"linear.weight": WEIGHT.to(torch.int8), "linear.bias": WEIGHT[:, 0]}, "quantized"),
        ({}, b"version https://git-lfs.github.com/spec/v1\n", "git-lfs"),
        ({}, b"pickle", "header"),
        ({}, b"", "pytorch_model.bin.*safetensors"),
    ],
)
def test_layers_that_cannot_be_kept_are_refused_in_one_line(
    with_dense: Path, tmp_path: Path, changes: dict[str, Any], weights: Any, said: str
) -> None:
    config = json.loads((with_dense / "2_Dense" / "config.json").read_text())
    place = changed(with_dense, tmp_path / "changed", "2_Dense/config.json", config | changes)
    file = place / "2_Dense" / "model.safetensors"
    if isinstance(weights, dict):
        save_file({name: values.contiguous() for name, values in weights.items()}, file)
    elif weights:
        file.write_bytes(weights)
    elif weights is not None:
        file.rename(file.with_name("pytorch_model.bin"))
    with pytest.raises(CheckpointError, match=said) as refused:
        load_checkpoint(place)
    assert "\n" not in str(refused.value)


def test_a_plain_encoder_is_pooled_as_asked(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    tokenizer = tiny_family_tokenizer("bert")
    torch.manual_seed(0)
    model = AutoModel.from_config(tiny_family_config("bert")).eval()
    model.save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    with pytest.raises(CheckpointError, match="pooling=mean"):
        load_checkpoint(plain)
    found = load_checkpoint(plain, pooling="mean")
    assert isinstance(found.task, SentenceEmbedding)
    inputs = tokenizer(TEXTS[:1], return_tensors="pt")
    with torch.inference_mode():
        expected = model(**inputs).last_hidden_state.mean(dim=1)
        torch.testing.assert_close(found.model(**inputs)[VECTOR], expected)
        torch.testing.assert_close(from_memory(model, tokenizer, "mean").model(**inputs)[VECTOR], expected)
    with pytest.raises(ConfigError, match="not both"):
        read_run({"checkpoint": "c", "unlabelled": "u", "pooling": "mean", "head": {"task": "regression"}}).settled()


@pytest.mark.slow
def test_a_sentence_transformer_in_memory_is_pruned_as_its_directory(written: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model, texts = SentenceTransformer(str(written), device="cpu"), [{"text": text} for text in TEXTS]
    before = model.encode(TEXTS[:5])
    knobs = {"max_length": 24, "calibrate_rows": 30, "budgets": [0.6], "within_points": None}
    result = axformer.prune(model, unlabelled=texts, method="compress", output=tmp_path / "smaller", **knobs)
    assert np.array_equal(model.encode(TEXTS[:5]), before), "it is not changed"
    checkpoint = load_checkpoint(written)
    assert from_memory(model, None).sha256 == checkpoint.sha256
    smaller = SentenceTransformer(str(tmp_path / "smaller" / "model"), device="cpu")
    assert smaller.encode(TEXTS[:5]).shape == before.shape
    assert result.plan != Plan.full(checkpoint.dimensions)


@pytest.mark.slow
def test_forms_without_this_package_give_the_same_vectors(written: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(written)
    data = prepare(rows_of([{"text": text} for text in TEXTS[:12]]), checkpoint, CONFIG)
    plan = Plan.full(checkpoint.dimensions).dropping((2,))
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    finished = Finished(checkpoint, plan, small, data.samples)
    assert isinstance(make_forms(finished, (STOCK,), tmp_path)[0], Form)
    loaded_form(finished, ONNX, tmp_path)
    expected = torch.stack(list(measure(small, checkpoint.task, data.samples).answers))
    np.testing.assert_allclose(expected, encoded_by_the_library(tmp_path / "stock", TEXTS[:12]), atol=1e-5)
    for name in ("stock", "hub"):
        assert json.loads((tmp_path / name / "config.json").read_text())["architectures"] == ["BertModel"]
    session = onnxruntime.InferenceSession(tmp_path / "hub" / "onnx" / "model.onnx")
    assert [one.name for one in session.get_outputs()] == [VECTOR, TOKENS]
    inputs = checkpoint.tokenizer([f"word4 {TEXTS[0]}"], return_tensors="np")
    (vector,) = session.run([VECTOR], {name: inputs[name] for name in inputs})[0]
    np.testing.assert_allclose(expected[0], vector, atol=1e-5)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"validation": "rows"}, "decides by labels"),
        ({"validation": "rows", "goal": "within-points=1"}, "give them as unlabelled"),
        ({"unlabelled": "rows", "goal": "operations=2", "train": "rows"}, "vectors have no labels"),
        ({"unlabelled": "rows", "goal": "operations=2", "pooling": "mean"}, "leave pooling=mean out"),
    ],
)
def test_what_asks_for_labels_of_vectors_is_refused(
    written: Path, tmp_path: Path, asked: dict[str, Any], said: str
) -> None:
    rows = str(write_rows(tmp_path / "rows.jsonl", [{"text": text} for text in TEXTS]))
    given = {name: rows if value == "rows" else value for name, value in asked.items()}
    with pytest.raises((ConfigError, CheckpointError), match=said):
        PruningRun.open(read_run({"checkpoint": str(written), **given}))
