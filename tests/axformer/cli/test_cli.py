"""The command line as its users meet it: exit codes, one line an error, nothing half-written."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table
from typer.main import get_command
from typer.testing import CliRunner

from axformer.cli.display import closing_table, display_for, measured_by
from axformer.cli.main import app
from axformer.cli.options import beside, knob_names
from axformer.config import KNOBS, PassConfig
from axformer.forms.kinds import COMPACT, KINDS, ONNX_INT8
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.wire.finetuning import make_settings
from axformer.wire.steps import Step, StepName
from tests.forked import forked_interpreter
from tests.tiny_models import (
    answered_rows,
    answering_model,
    save_tiny_checkpoint,
    tiny_config,
    tiny_rows,
    tiny_tokenizer,
    write_rows,
)


def axformer(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """The command in a process of its own."""
    code = "from axformer.cli.main import app; app(prog_name='axformer')"
    return forked_interpreter(["-c", code, *map(str, arguments)])


def invoke(*arguments: object) -> Any:
    """The command in this process. What its users would see as a traceback is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.slow
def test_prune_writes_the_result_and_plain_lines_when_piped(tmp_path: Path, data: Path) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / "checkpoint", tiny_config(layers=1))
    held_out = write_rows(tmp_path / "test.jsonl", tiny_rows(10, seed=3))
    knobs = write_config(tmp_path / "knobs.toml", 'majority_fraction = 0.4\norder = "random"\n')
    output = tmp_path / "deep" / "out"
    result = invoke(
        *("prune", checkpoint, "--data", data, "--output", output, "--test", held_out),
        *("--config", knobs, "--set", "order=bottom-top-middle", "--set", "max_length=8"),
    )
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    trace = [json.loads(line) for line in (output / "trace.jsonl").read_text().splitlines()]
    shown = re.findall(r"^trial (\d+) (\S+) (\w+) loss[>=]", result.stdout, re.MULTILINE)
    assert [(int(seq), element, verdict) for seq, element, verdict in shown] == [
        (trial["seq"], trial["element"] or "base", trial["verdict"]) for trial in trace
    ]
    assert "rows are longer than max_length=8 and lose their end" in result.stdout
    assert "held-out accuracy" in result.stdout
    assert [name for name, kind in KINDS.items() if kind.is_in(output)] == [COMPACT, ONNX_INT8], "who asks for none"
    config = json.loads((output / "report.json").read_text())["config"]
    assert (config["majority_fraction"], config["order"], config["max_length"]) == (0.4, "bottom-top-middle", 8)


def test_without_an_output_the_result_lies_beside_the_checkpoint_and_quiet_says_the_answer_alone(
    tmp_path: Path, checkpoint: Path, data: Path
) -> None:
    given = tmp_path / "given"
    given.symlink_to(checkpoint)
    for name in ("given-pruned", "given-pruned-2"):
        result = invoke("prune", given, "--data", data, "--preset", "paper", "--forms", "compact", "--quiet")
        assert (result.exit_code, result.stderr) == (0, "")
        lines = result.stdout.splitlines()
        assert lines[-1] == f"In {tmp_path / name}/"
        assert len(lines) <= 3
        assert (tmp_path / name / "report.json").is_file()


def test_the_directory_beside_a_checkpoint_has_a_name_that_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs/bert").mkdir(parents=True)
    assert beside("runs/bert/") == Path("runs/bert-pruned")
    assert beside("hf://org/bert@v1") == beside("HF://org/bert") == Path("bert-pruned")
    for number in range(2, 5):
        beside("runs/bert").mkdir()
        assert beside("runs/bert") == Path(f"runs/bert-pruned-{number}")
    monkeypatch.chdir("runs/bert")
    assert beside(".") == tmp_path / "runs" / "bert-pruned-4"


def test_prune_trains_what_is_left_where_it_is_told_to(tmp_path: Path, checkpoint: Path, data: Path) -> None:
    lessons = write_rows(tmp_path / "train.jsonl", tiny_rows(24, seed=8))
    result = invoke(
        *("prune", checkpoint, "--data", data, "--output", tmp_path / "out", "--train", lessons),
        *("--finetune", "epochs=2", "--finetune", "learning_rate=0.001", "--set", "attention_top_k=null", "--json"),
        *("--forms", "compact"),
    )
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report == json.loads((tmp_path / "out" / "report.json").read_text())
    assert f"{report['trials']} of {report['trials']} done" in result.stderr
    told = report["finetune"]
    assert told["settings"] == make_settings({"epochs": 2, "learning_rate": 0.001}).model_dump()
    assert (told["epochs"], told["kept_epoch"]) == (2, 2)
    assert not list(tmp_path.glob(".*-training")), "the state of the training goes with its end"
    assert told["data"]["rows"] == 24


def test_prune_stops_where_the_model_is_worse_than_guessing_and_goes_on_where_it_is_told_to(tmp_path: Path) -> None:
    model = answering_model(3)
    model.save_pretrained(tmp_path / "model")
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    swapped = write_rows(tmp_path / "swapped.jsonl", answered_rows(model, 60, (2, 1, 0)))
    command = ("prune", tmp_path / "model", "--data", swapped, "--output", tmp_path / "out", *("--preset", "paper"))
    result = invoke(*command)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: data file '{swapped}': the untouched model is often wrong, because")
    assert "0 = LABEL_2, 1 = LABEL_1, 2 = LABEL_0 (accuracy 1.0000)" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()

    result = invoke(*command, "--accept-poor-model", "--set", "attention_top_k=null", "--forms", "compact")
    assert result.exit_code == 0, result.stderr
    first, note, *_ = result.stdout.splitlines()
    assert first.startswith("validation: 60 rows, ")
    assert note.startswith("note: the untouched model is often wrong, because")
    assert json.loads((tmp_path / "out" / "report.json").read_text())["config"]["accept_poor_model"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("times", "code", "first"), [(1.2, 0, "The target was reached"), (1.2, 3, "The target was not")]
)
def test_a_target_is_the_first_line_of_the_result_and_has_an_exit_code_where_it_was_missed(
    tmp_path: Path, checkpoint: Path, data: Path, times: float, code: int, first: str
) -> None:
    wish = (
        ("--goal", f"operations={times}")
        if code == 0
        else ("--preset", "paper", "--set", f"target_speedup={9 * times}")
    )
    result = invoke("prune", checkpoint, "--data", data, "--output", tmp_path / "out", "--forms", "compact", *wish)
    assert result.exit_code == code, result.stderr
    lines = result.stdout.splitlines()
    place = next(index for index, line in enumerate(lines) if line.startswith(first))
    assert lines[place + 1].startswith("What you can deploy")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["target"]["reached"] is (code == 0)
    assert (report["estimated_speedup"] >= report["config"]["target_speedup"]) is (code == 0)


def write_config(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--data", "DATA"], "checkpoint 'nowhere' is not a directory"),
        (["CHECKPOINT", "--data", "nowhere.jsonl"], "data file 'nowhere.jsonl' does not exist"),
        (["CHECKPOINT", "--data", "DATA", "--goal", "fast"], "goal 'fast' is unknown"),
        (["CHECKPOINT", "--data", "DATA", "--goal", "no-worse", "--preset", "paper"], "a goal has its own preset"),
        (["CHECKPOINT", "--data", "DATA", "--set", "margin=2"], "did you mean refine_margin?"),
        (["CHECKPOINT", "--data", "DATA", "--set", "refine_margin"], "'refine_margin' is not a knob"),
        (["CHECKPOINT", "--data", "DATA", "--set", "refine_margin=0"], "refine_margin=0: input should be greater"),
        (["CHECKPOINT", "--data", "DATA", "--config", "nowhere.toml"], "config file 'nowhere.toml' cannot be read"),
        (["CHECKPOINT", "--data", "DATA", "--columns", "txt=a"], "--columns 'txt=a' is not name=column"),
        (["CHECKPOINT", "--data", "DATA", "--columns", "txt=a"], "did you mean text?"),
        (["CHECKPOINT", "--data", "DATA", "--columns", "text=a,text=b"], "two columns for text, 'a' and 'b'"),
        (["CHECKPOINT", "--data", "DATA", "--columns", "text=a"], "has no column 'a', it has label, text"),
        (["CHECKPOINT", "--data", "DATA", "--device", "abacus"], "device 'abacus' cannot be used here"),
        (["CHECKPOINT", "--data", "DATA", "--test", "x.doc"], "data file 'x.doc' has no known ending"),
        (
            ["CHECKPOINT", "--data", "DATA", "--finetune", "epochs=2"],
            "finetune says how to train, and train on what",
        ),
        (
            ["CHECKPOINT", "--data", "DATA", "--train", "DATA", "--finetune", "epochs=0"],
            "finetune epochs=0: Input should be",
        ),
        (["CHECKPOINT", "--data", "DATA", "--train", "nowhere.jsonl"], "data file 'nowhere.jsonl' does not exist"),
        (
            [
                "CHECKPOINT",
                "--data",
                "DATA",
                "--preset",
                "published",
                "--set",
                "order=explicit",
                "--set",
                'explicit_order=["layer.9.ffn"]',
            ],
            "explicit_order names 'layer.9.ffn', which is not a block of this model",
        ),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    tmp_path: Path, checkpoint: Path, data: Path, arguments: list[str], message: str
) -> None:
    places = {"CHECKPOINT": str(checkpoint), "DATA": str(data)}
    given = [places.get(text, text) for text in arguments]
    result = invoke("prune", *given, "--output", tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_argument_ends_a_real_process_with_code_two(tmp_path: Path) -> None:
    process = axformer("prune", "nowhere", "--data", "x.jsonl", "--output", tmp_path / "out", "--set", "seed=-1")
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr == "error: knob seed=-1: input should be greater than or equal to 0\n"


def test_an_output_that_is_taken_is_refused_before_any_work(tmp_path: Path, checkpoint: Path, data: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    result = invoke("prune", checkpoint, "--data", data, "--output", tmp_path)
    assert result.exit_code == 2
    assert "exists and is not empty" in result.stderr
    assert result.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


DIMENSIONS = Dimensions(layers=2, heads=2, hidden_size=4, intermediate_size=8)


def trial(seq: int, phase: Phase, element: str | None, loss: float, verdict: Verdict) -> Trial:
    helped = None if element is None else 7
    return Trial(
        **{"seq": seq, "phase": phase, "element": element, "loss": loss, "verdict": verdict, "helped": helped},
        **{
            "samples": 10,
            "total": 10,
            "min_loss": 0.7,
            "loss_is_bound": False,
            "precision": "float32",
        },
        **{"parameters": 1200, "seconds": float(seq + 1)},
    )


def test_a_terminal_shows_what_moves() -> None:
    console = Console(force_terminal=True, width=110, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    with console.file, display_for(console, measured_by(DIMENSIONS, PassConfig())) as display:
        display.show(trial(0, Phase.BASE, None, 0.7, Verdict.BASE))
        display.show(trial(1, Phase.HARD_ATTENTION, "layer.0.hard_attention", 0.69, Verdict.ACCEPT))
        display.show(trial(2, Phase.HARD_ATTENTION, "layer.1.hard_attention", 0.7, Verdict.REJECT))
        display.show(trial(3, Phase.BLOCK, "layer.1.ffn", 0.63, Verdict.ACCEPT))
    shown = console.export_text()
    for part in ("4/7", "0.6300", "(base 0.7000, -10.0%)", "removed 1 element, 1,200 parameters", "about 3 s left"):
        assert part in shown


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_trial_is_called_by_its_number_in_the_trace(is_terminal: bool) -> None:
    """As on the pages: the untouched model is trial 0. How many are done is said in words, not to be taken for a number."""
    console = Console(force_terminal=is_terminal, width=110, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    with console.file, display_for(console, measured_by(DIMENSIONS, PassConfig())) as display:
        display.show(trial(0, Phase.BASE, None, 0.7, Verdict.BASE))
        display.show(trial(1, Phase.BLOCK, "layer.1.ffn", 0.65, Verdict.REJECT))
    base, first = (
        next(line for line in reversed(console.export_text(clear=False).splitlines()) if f" {element} " in line)
        for element in ("base", "layer.1.ffn")
    )
    assert (base.split()[:3], first.split()[:3]) == (["trial", "0", "base"], ["trial", "1", "layer.1.ffn"])
    if not is_terminal:
        assert first.endswith("2 of 5 done"), "no hard attention was tried"


def test_a_bound_is_shown_as_one() -> None:
    bound = trial(1, Phase.BLOCK, "layer.1.ffn", 0.65, Verdict.REJECT)
    bound = bound.model_copy(update={"loss_is_bound": True, "samples": 8})
    for is_terminal, expected in ((True, ("≥0.6500", "7/8 helped")), (False, ("loss>=0.650000", "helped=7/8"))):
        console = Console(force_terminal=is_terminal, width=110, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
        with console.file, display_for(console, measured_by(DIMENSIONS, PassConfig())) as display:
            display.show(trial(0, Phase.BASE, None, 0.7, Verdict.BASE))
            display.show(bound)
        shown = console.export_text()
        assert all(part in shown for part in expected)


def test_plain_lines_tell_each_epoch_once() -> None:
    console = Console(force_terminal=False, width=110, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    with console.file, display_for(console, measured_by(DIMENSIONS, PassConfig())) as display:
        for done in range(1, 7):
            step = Step(name=StepName.TRAINING, done=done, known=6, detail=f"epoch {(done + 2) // 3} of 2")
            display.tell(step)
    told = [line for line in console.export_text().splitlines() if line]
    assert told == ["training the model (epoch 1 of 2): 1 of 6", "training the model (epoch 2 of 2): 4 of 6"]


def test_the_closing_table_shows_the_change() -> None:
    side = {
        "validation": {"loss": 0.5},
        "test": None,
        "parameters": 1000,
        "bytes": 2e6,
        "latency_ms": 4.0,
        "operations": 4e6,
    }
    after = {
        "validation": {"loss": 0.4},
        "test": None,
        "parameters": 750,
        "bytes": 1e6,
        "latency_ms": 2.0,
        "operations": 3e6,
    }
    report = {
        "base": side,
        "pruned": after,
        "removed": ["layer.0.ffn"],
        "hard_attention": [],
        "trials": 9,
        "seconds": 75.0,
    }
    shown = printed(closing_table(report))
    for part in ("-0.1000", "-25.0%", "-50.0%", "9 trials in 1 min 15 s"):
        assert part in shown
    assert "encoder" not in shown, "older reports do not tell it"
    assert "alone" not in shown
    assert "not trained" not in shown
    trained = " ".join(
        printed(closing_table(report | {"finetune": {"before": {"validation": {"loss": 0.45}}}})).split()
    )
    assert "before ┃ cut alone ┃ after" in trained
    assert "validation loss │ 0.5000 │ 0.4500 │ 0.4000 │ -0.1000" in trained
    assert "parameters │ 1,000 │ │ 750 │ -25.0%" in trained


def test_the_closing_table_tells_the_encoder_and_what_is_no_pruning() -> None:
    side = {"validation": {"loss": 0.5}, "test": None, "parameters": 1000, "encoder_parameters": 400, "latency_ms": 4.0}
    after = side | {"parameters": 800, "encoder_parameters": 200, "latency_ms": 3.0}
    report = {
        "base": side,
        "pruned": after,
        "removed": ["layer.0.ffn"],
        "hard_attention": [],
        "trials": 9,
        "seconds": 75.0,
    }
    shown = " ".join(printed(closing_table(report | {"one_position_ms": 3.6})).split())
    assert "parameters │ 1,000 │ 800 │ -20.0% │ │ parameters of the encoder │ 400 │ 200 │ -50.0%" in shown
    assert "latency, ms │ 4.00 │ 3.00 │ -25.0% │ │ latency by pruning alone, ms │ 3.60 │ 3.00 │ -16.7%" in shown
    assert "Latency -25.0%, of which -10.0% by computing the last layer at one position, which removes nothing" in shown


def printed(table: Table) -> str:
    console = Console(width=140, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    with console.file:
        console.print(table)
    return console.export_text()


def test_every_command_can_answer_as_json() -> None:
    def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from commands(command, f"{path} {name}")
            else:
                yield f"{path} {name}", command

    options = {
        name: {flag for one in command.params for flag in one.opts}
        for name, command in commands(get_command(app), "axformer")
    }
    assert len(options) > 20
    asks = "axformer label"  # a person; what came of it axformer certify tells
    assert [name for name, flags in options.items() if "--json" not in flags] == [asks]


def test_a_shell_offers_the_knobs_that_begin_so() -> None:
    assert [name for name, _ in knob_names("safeguard")] == ["safeguard="]
    assert len(knob_names("")) == len(set(KNOBS))
    assert all(reason for _, reason in knob_names(""))
