"""The metadata of a model card, as model hubs read it: task, base model, data sets, and results as ``model-index``."""

import math
import re

from huggingface_hub import EvalResult, ModelCardData

from axformer.config import method_of
from axformer.forms.kinds import COMPACT, HUB, ONNX
from axformer.reporting.card_forms import Loading
from axformer.reporting.deployable import TITLES
from axformer.reporting.markdown import LONGEST_WORD
from axformer.wire.metrics import judging_metric
from axformer.wire.report import Report

_HUB = "hf://"
_HUB_DATA = "hf://datasets/"
_METRICS = {"f1_macro": "f1", "f1_micro": "f1", "pearson": "pearsonr", "spearman": "spearmanr"}
"""Hubs' names of metrics, where they differ from ours."""
_SUFFIX = re.compile(r"\.(tar\.gz|tgz|tar|zip|jsonl|json|csv|tsv|parquet)(\.gz)?$")
_ODD = re.compile(r"[^\w .,:/@+=()-]")


def plain_name(name: str) -> str:
    """A name from outside, fit for a heading: on one line, without marks of Markdown, and not too long."""
    return _ODD.sub("_", name)[:LONGEST_WORD]


def name_of_model(report: Report) -> str:
    """The checkpoint's name without its place and its suffix."""
    name = report.names.get("checkpoint", "").removeprefix(_HUB).partition("@")[0]
    return plain_name(_SUFFIX.sub("", name.rpartition("/")[2])) or "model"


def name_of_data(report: Report, part: str) -> str | None:
    """The name of a data set for people; None if the report has none."""
    name = report.names.get(part)
    return None if name is None else plain_name(name.removeprefix(_HUB_DATA))


def metadata(report: Report, loading: Loading, inside: str = "") -> str:
    """The YAML block of the card, without its dashes.

    Args:
        report: the report; results are those on held-out data, and left out without any.
        loading: how the model is loaded, which names the task.
        inside: the directory of the result that the card is for, whose forms alone have results then; empty for its top.
    """
    results = _results(report, loading, inside)
    names = {result.metric_type for result in results}
    data = ModelCardData(
        base_model=_hub_id(report.names.get("checkpoint"), _HUB),
        datasets=_data_sets(report),
        eval_results=results or None,
        library_name=ONNX if inside == HUB else "axformer",
        metrics=sorted(names - {"loss"}) or None,
        model_name=name_of_model(report),
        pipeline_tag=loading.tag,
        tags=["axformer", method_of(report.config)],
    )
    return str(data.to_yaml())


def _results(report: Report, loading: Loading, inside: str) -> list[EvalResult]:
    """Every held-out figure of the compact form, and the first metric of the other forms; inside a directory, of its forms."""
    name = name_of_data(report, "test") or "held-out"
    type_ = _data_id(report.names.get("test")) or name
    figures = [] if inside else [(metric, value, metric) for metric, value in (report.pruned.test or {}).items()]
    first = judging_metric(report.pruned.test or {}, "test")
    figures += [
        (first, form.test[first], f"{first}, {TITLES.get(form.name, form.name)}")
        for form in report.forms
        if form.made and form.test is not None and form.name != COMPACT and (not inside or form.directory == inside)
    ]
    return [
        EvalResult(
            task_type=loading.tag,
            dataset_type=type_,
            dataset_name=name,
            metric_type=_METRICS.get(metric, metric),
            metric_value=value,
            metric_name=title.replace("_", " "),
        )
        for metric, value, title in figures
        if math.isfinite(value)
    ]


def _data_sets(report: Report) -> list[str] | None:
    ids = [_data_id(report.names.get(part)) for part in ("validation", "test", "calibrate", "train")]
    return list(dict.fromkeys(found for found in ids if found is not None)) or None


def _data_id(reference: str | None) -> str | None:
    """The data set's id on a hub; None for a file of another place."""
    return _hub_id(reference, _HUB_DATA)


def _hub_id(reference: str | None, prefix: str) -> str | None:
    if reference is None or not reference.startswith(prefix):
        return None
    return "/".join(reference.removeprefix(prefix).partition("@")[0].split("/")[:2])
