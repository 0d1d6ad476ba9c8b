"""The advice in a report: which form to deploy, and whether a model that reached its target is of any use."""

from axformer.reporting.deploy_table import deployables, is_untouched
from axformer.reporting.deployable import Deployables
from axformer.reporting.standing import USELESS
from axformer.scores.path_costs import costs_of
from axformer.wire.report import Report
from axformer.wire.verdicts import Standing, TargetOutcome


def with_advice(report: Report) -> Report:
    """The report with its advice, and with a target whose outcome says whether the model is usable."""
    content = report.model_dump(mode="json")
    found = deployables(content)
    assert found is not None, "every report has the compact form"
    judgements = iter([row.judgement for row in found.rows[1:]])
    forms = {
        name: [form.model_copy(update={"judgement": next(judgements)}) if form.made else form for form in part]
        for name, part in (("before_forms", report.before_forms), ("forms", report.forms))
    }
    target = report.target
    if target is not None and report.config.get("cost") == "latency" and report.config.get("target_speedup"):
        target = _measured(report, found)
    if target is not None and target.reached and not is_untouched(content):
        target = _outcome(target, report, found)
    return report.model_copy(update={"advice": found.advice(), "target": target, **forms})


def _measured(report: Report, found: Deployables) -> TargetOutcome:
    """The outcome of a target of time: the model against the untouched one in the runtime that is advised, else in PyTorch."""
    times = float(report.config["target_speedup"])
    best = found.best
    row = found.pruned if best is None or best.of_untouched else best
    ratio, low = row.times_of(found.same_before(row) or found.rows[0])
    reached = ratio >= times
    figures = (
        f"{ratio:.2f} times as fast as your model in the same runtime ({row.title}) with one input, measured, {low:.2f} at "
        f"least; {report.estimated_speedup:.2f} times fewer operations"
    )
    more = "" if reached else f"; ask for more, for example speedup={times * times / max(ratio, 1.0):.2g}"
    return TargetOutcome(
        reached=reached, sentence=f"The target was {'' if reached else 'not '}reached: {figures}{more}."
    )


def _outcome(target: TargetOutcome, report: Report, found: Deployables) -> TargetOutcome:
    """The outcome of a target that was reached."""
    compact = found.pruned
    standing = compact.judgement.standing
    if standing is Standing.SHOWN:
        return target.model_copy(update={"usable": True})
    if standing not in USELESS:
        return target
    if not (report.config.get("target_size") or report.config.get("target_speedup")):  # someone chose it from a path
        sentence = f"{target.sentence} It is not usable: it {found.lacks(compact)}."
        return target.model_copy(update={"usable": False, "sentence": sentence})
    figures = target.sentence.partition(": ")[2].rstrip(".")
    sentence = f"Reached, not usable: {figures}, but the model {found.lacks(compact)}. {_instead(report, found)}"
    return target.model_copy(update={"usable": False, "sentence": sentence})


def _instead(report: Report, found: Deployables) -> str:
    """The fastest usable model of the path."""
    judged, kept = found.judged, next(point for point in report.path if point.kept)
    costs = next((costs for costs in costs_of(report.path) if costs.data == judged.data), None)
    if costs is None:
        return "Which models of the path are usable was not measured: give held-out data (--test)."
    model = costs.within(judged.points)
    if judged.guess is not None and model.value <= judged.guess:
        return "No model of the path is better than guessing."
    if not model.point.seq or model.point.seq == kept.seq:
        return "No model of the path is usable."
    return (
        f"The fastest usable model of the path is that of trial {model.point.seq}: {model.times:.2f} times fewer operations, "
        f"{costs.name} {model.change:+.2f} {costs.unit} (axformer apply RESULT CHECKPOINT --upto {model.point.seq})."
    )
