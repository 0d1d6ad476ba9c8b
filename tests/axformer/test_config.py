import pytest

from axformer.config import CompressConfig, PassConfig, PublishedConfig, changed_knobs, make_config, parse_knob
from axformer.errors import ConfigError


def test_the_paper_is_the_default() -> None:
    assert make_config("paper") == PassConfig()


def test_published_is_the_authors_program() -> None:
    config = make_config("published")
    assert isinstance(config, PublishedConfig)
    assert (config.helped_reference, config.ties_help, config.order, config.max_length) == (
        "original",
        True,
        "top-middle-bottom",
        128,
    )


OF_PAPER = {
    **{"helped_reference": "current", "ties_help": False, "hard_attention": True, "attention_top_k": 30},
    **{
        "neuron_search": "groups",
        "order": "auto",
        "task_name": None,
        "explicit_order": [],
        "inspect_layers_first": False,
    },
    **{"coarse_margin": 1.0, "safeguard": "none", "safeguard_folds": 5, "precision": "float32", "refit": False},
    **{"non_inferiority": None, "safeguard_alpha": 0.05, "evaluate_in": "float32"},
}
"""Knobs of the preset ``paper`` as an earlier version stored them."""


@pytest.mark.parametrize(
    ("preset", "stored", "today"),
    [
        ("paper", {}, {}),
        ("robust", {"safeguard": "folds"}, {}),
        ("paper", {"safeguard": "folds", "safeguard_folds": 3}, {"safeguard": 3}),
        ("paper", {"hard_attention": False}, {"attention_top_k": None}),
        ("paper", {"refit": True, "task_name": "entailment"}, {"repair": "refit", "order": "entailment"}),
        ("paper", {"task_name": "entailment", "order": "random"}, {"order": "random"}),
        (
            "published",
            {"helped_reference": "original", "ties_help": True, "order": "top-middle-bottom", "max_length": 128},
            {},
        ),
    ],
)
def test_a_config_of_an_earlier_version_is_read(
    preset: str, stored: dict[str, object], today: dict[str, object]
) -> None:
    assert make_config(preset, {**OF_PAPER, **stored}) == make_config(preset, today)
    assert changed_knobs(preset, {**OF_PAPER, **stored}) == today


def test_a_compression_of_an_earlier_version_is_read() -> None:
    config = make_config("smallest", {"leaving": "brain_surgeon", "table_rows": 64})
    assert isinstance(config, CompressConfig)
    assert config.table_rows == 64


@pytest.mark.parametrize(
    "row",
    [
        {"order": "random"},
        {"inspect_layers_first": True},
        {"attention_top_k": None},
        {"coarse_margin": 0.99},
    ],
)
def test_each_row_of_table_five_is_a_run_of_the_preset_published(row: dict[str, object]) -> None:
    paper = {"helped_reference": "current", "ties_help": False, "order": "auto", "max_length": None}
    config = make_config("published", {**paper, **row})
    assert PassConfig(**{name: value for name, value in config if name in PassConfig.model_fields}) == make_config(
        "paper", {name: value for name, value in row.items() if name in PassConfig.model_fields}
    )
    assert (
        config.variant.model_dump().items()
        >= {n: v for n, v in row.items() if n not in PassConfig.model_fields}.items()
    )


def test_a_group_is_a_twelfth_of_the_block_unless_told() -> None:
    assert PassConfig().group_size(3072) == 256
    assert PassConfig().group_size(5) == 1
    assert PassConfig(neuron_group_size=1).group_size(3072) == 1


@pytest.mark.parametrize(
    ("preset", "knobs", "message"),
    [
        ("best", {}, "preset 'best' is unknown; there are paper, published"),
        ("papers", {}, r"preset 'papers' is unknown; did you mean paper\?"),
        ("paper", {"what": 2}, "knob 'what' is unknown; the knobs are method, seed, "),
        ("paper", {"margin": 2}, r"knob 'margin' is unknown; did you mean refine_margin\?$"),
        ("paper", {"speedup": 2, "margin": 2}, r"did you mean target_speedup\?; knob 'margin' is unknown"),
        ("paper", {"top_k": 9, "seed": -1}, r"did you mean attention_top_k\?; knob seed=-1: input should be"),
        ("smallest", {"budgets": 0.5}, "knob budgets=0.5: budgets are a list, also where there is only one"),
        ("smallest", {"budgets": [0.5, 0.8]}, "largest first, for example \\[0.8, 0.65, 0.5\\]"),
        ("paper", {"budgets": [1]}, "knob 'budgets' is of method=compress, not of method=axformer"),
        ("paper", {f"x{number}": 1 for number in range(10)}, "knob 'x7' is unknown; .*; 2 more knobs are unknown$"),
        ("paper", {"refine_margin": 0.5}, "knob refine_margin=0.5: input should be greater than or equal to 1"),
        ("paper", {"seed": 2**64}, "knob seed=18446744073709551616: input should be less than or equal to 2147483647"),
        ("paper", {"max_length": 2**31}, "knob max_length=2147483648: input should be less than or equal to"),
        ("paper", {"cache_budget": -1}, "knob cache_budget=-1: input should be greater than or equal to 0"),
        ("paper", {"loss_budget": 1.1}, "knob loss_budget=1.1 is of an earlier version and no longer there: tolerance"),
        ("paper", {"safeguard_alpha": 0.1}, "knob safeguard_alpha=0.1 is of an earlier version"),
        ("paper", {"precision": "guarded"}, "knob precision='guarded' is of an earlier version and no longer there"),
        ("paper", {"safeguard": "paired"}, "safeguard=paired is of an earlier version and no longer there"),
        ("paper", {"method": "magic"}, "method 'magic' is unknown; there are axformer"),
        ("paper", {"method": "Compres"}, r"method 'Compres' is unknown; did you mean compress\?"),
        ("paper", {"method": ["axformer"]}, r"method .* is unknown; there are axformer"),
        ("paper", {"order": "randm"}, r"knob order='randm': input should be 'auto', .*; did you mean random\?"),
        ("paper", {"within_points": 1}, "within_points=1.0 chooses by rows that did not decide; give confirm too"),
        ("paper", {"tolerance": -0.1}, "knob tolerance=-0.1: input should be greater than or equal to 0"),
        ("paper", {"target_size": 1}, "knob target_size=1: input should be less than 1"),
        ("paper", {"target_speedup": 1}, "knob target_speedup=1: input should be greater than 1"),
        ("paper", {"target_speedup": float("inf")}, "knob target_speedup=inf: input should be a finite number"),
        ("paper", {"order": "upwards"}, "knob order='upwards': input should be 'auto'"),
        ("paper", {"order": "explicit"}, "order=explicit and explicit_order go together"),
        ("published", {"explicit_order": ["layer.0.ffn"]}, "order=explicit and explicit_order go together"),
        ("paper", {"explicit_order": ["layer.0.ffn"]}, "explicit_order=\\['layer.0.ffn'\\] .* with preset=published"),
        ("robust", {"ties_help": True}, "knob ties_help=True reproduces .*; give it with preset=published"),
        ("paper", {"non_inferiority": 0.3}, "knob non_inferiority=0.3 is of an earlier version"),
        (
            "paper",
            {"evaluate_in": "int8"},
            "evaluate_in='int8' is of an earlier version .*; ask for the form onnx_int8",
        ),
        ("smallest", {"evaluate_in": "int8"}, "knob evaluate_in='int8' is of an earlier version and no longer there"),
        ("smallest", {"leaving": "magnitude"}, "knob leaving='magnitude' is of an earlier version"),
        ("published", {"order": "explicit", "explicit_order": ["a", "a"]}, "=\\['a', 'a'\\]: names a more than once"),
    ],
)
def test_a_wrong_knob_is_named_with_its_value(preset: str, knobs: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        make_config(preset, knobs)


@pytest.mark.parametrize(
    ("text", "value"), [("seed=3", 3), ("order=random", "random"), ("ties_help=true", True), ("max_length=null", None)]
)
def test_a_knob_is_json_or_text(text: str, value: object) -> None:
    assert parse_knob(text) == (text.partition("=")[0], value)


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 9000])
def test_a_knob_that_no_json_reader_takes_is_text(value):
    assert parse_knob(f"seed={value}") == ("seed", value)


def test_a_knob_has_a_value() -> None:
    with pytest.raises(ConfigError, match="'seed' is not a knob; write name=value"):
        parse_knob("seed")


def test_every_knob_says_why_it_is_there() -> None:
    assert [name for name, field in PublishedConfig.model_fields.items() if not field.description] == []
