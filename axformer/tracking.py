"""Tell experiment trackers of a result: MLflow, and Weights & Biases. Each is imported when it is asked for."""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from axformer.errors import InputError, NotTakenError, first_line
from axformer.plan.result_files import read_result
from axformer.reporting.deploy_table import deployables
from axformer.reporting.deployable import BEFORE, Deployable

_REPORT, _RUN = "report.json", "run.json"
_FILES = ("README.md", _REPORT, "report.html", _RUN, "plan.json")
"""Files of a result that a tracker keeps, those that are there."""
_ON_PATH = ("parameters", "operations", "estimated_speedup", "loss")
_DATA = ("deciding", "confirming", "unlabelled", "test")
PROJECT = "axformer"
"""Where W&B keeps it, unless ``WANDB_PROJECT`` says otherwise."""


@dataclass(frozen=True)
class Tracked:
    """What a tracker is told of a result."""

    name: str
    params: dict[str, Any]
    """The run as it was asked for, and every knob."""
    path: list[dict[str, float]]
    """Figures of each model of the path, the untouched one first."""
    figures: dict[str, float]
    """Figures of each form, and of the untouched model."""
    tags: dict[str, str]
    """The advice, the certificate, and what made it."""
    files: list[Path]

    @property
    def is_certified(self) -> bool:
        """Whether the form that is advised is certified."""
        return self.tags["axformer.certified"] == "true"


def tracked(result: Path) -> Tracked:
    """Read what a tracker is told of a result.

    Raises:
        InputError: it is no result of a run.
    """
    try:
        report = json.loads(read_result(result, _REPORT))
        run = json.loads((result / _RUN).read_text("utf-8")) if (result / _RUN).is_file() else {}
        knobs = {f"config.{name}": value for name, value in report["config"].items()}
        return Tracked(
            name=result.resolve().name,
            params=dict(_flat(run)) | knobs,
            path=[_of_point(point) for point in report["path"]],
            figures=_of_forms(report),
            tags=_tags(report),
            files=[result / name for name in _FILES if (result / name).is_file()],
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"it has no '{error.args[0]}'" if isinstance(error, KeyError) else error
        raise InputError(f"'{result}' is no result of a run: {why}") from None


def _flat(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


def _finite(figures: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in figures.items() if value is not None and math.isfinite(value)}


def _of_point(point: Mapping[str, Any]) -> dict[str, float]:
    figures = {f"path/{name}": point[name] for name in _ON_PATH}
    for data in _DATA:
        figures |= {f"path/{data}/{metric}": value for metric, value in (point.get(data) or {}).items()}
    return _finite(figures)


def _of_forms(report: Mapping[str, Any]) -> dict[str, float]:
    found = deployables(report)
    if found is None:
        return {}
    figures: dict[str, float | None] = {}
    for row in found.rows:
        figures |= {f"{_name(row)}/{found.metric}": row.metric, f"{_name(row)}/change": row.change}
        figures |= {f"{_name(row)}/milliseconds": row.milliseconds, f"{_name(row)}/times_as_fast": row.times}
        figures |= {f"{_name(row)}/inputs_per_second": row.per_second, f"{_name(row)}/bytes": row.bytes}
    return _finite(figures)


def _name(row: Deployable) -> str:
    """``onnx_int8``, and ``base/onnx_int8`` for the untouched model in that form."""
    return f"{BEFORE}/{row.name}" if row.name != BEFORE and row.of_untouched and row.directory is None else row.name


def _tags(report: Mapping[str, Any]) -> dict[str, str]:
    found = deployables(report)
    advice = None if found is None else found.advice()
    certificate = report.get("certificate")
    return {
        "axformer.version": str(report["environment"].get("axformer", "unknown")),
        "axformer.advice": "Nothing was measured." if found is None else found.sentence,
        "axformer.form": "none" if advice is None or advice.form is None else advice.form,
        "axformer.certified": str(advice is not None and advice.certified).lower(),
        "axformer.certificate": "No certificate was asked for." if certificate is None else certificate["sentence"],
    }


def to_mlflow(record: Tracked, uri: str | None = None) -> str:
    """Log a result as a run of MLflow, in the experiment that ``MLFLOW_EXPERIMENT_NAME`` names; one step a point of the path.

    Args:
        uri: the tracking server or store; None for ``MLFLOW_TRACKING_URI``, else what MLflow takes by default.

    Returns:
        The id of the run.

    Raises:
        InputError: MLflow is not installed.
        NotTakenError: it refuses or does not answer.
    """
    mlflow = _imported("mlflow", "mlflow")
    try:
        if uri is not None:
            mlflow.set_tracking_uri(uri)
        about = {"run_name": record.name, "description": record.tags["axformer.advice"]}
        with mlflow.start_run(**about, tags=record.tags) as run:
            mlflow.log_params(record.params)
            for step, figures in enumerate(record.path):
                mlflow.log_metrics(figures, step=step)
            mlflow.log_metrics(record.figures)
            for file in record.files:
                mlflow.log_artifact(str(file))
        return str(run.info.run_id)
    except mlflow.MlflowException as error:
        raise NotTakenError(f"MLflow did not take the result: {first_line(error)}") from error


def to_wandb(record: Tracked) -> str:
    """Log a result as a run of Weights & Biases, which reads its settings from the environment (``WANDB_MODE=offline``).

    Returns:
        The address of the run; offline, its directory.

    Raises:
        InputError: W&B is not installed.
        NotTakenError: it refuses or does not answer.
    """
    wandb = _imported("wandb", "wandb")
    labels = ["certified" if record.is_certified else "not certified", f"form: {record.tags['axformer.form']}"]
    about = {"name": record.name, "tags": labels, "notes": record.tags["axformer.advice"], "config": record.params}
    try:
        with wandb.init(project=os.environ.get("WANDB_PROJECT", PROJECT), job_type=PROJECT, **about) as run:
            for step, figures in enumerate(record.path):
                run.log(figures, step=step)
            run.summary.update(record.figures | record.tags)
            artifact = wandb.Artifact(re.sub(r"[^\w.-]", "-", record.name), type="axformer-result")
            for file in record.files:
                artifact.add_file(str(file))
            run.log_artifact(artifact)
            return str(Path(run.dir).parent if run.offline else run.url)
    except wandb.Error as error:
        raise NotTakenError(f"W&B did not take the result: {first_line(error)}") from error


def _imported(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise InputError(f"{name} is not installed; pip install 'axformer[{extra}]'") from None
