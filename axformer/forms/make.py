"""Make the forms of a finished model. Each is loaded in a fresh process and compared with the model in memory."""

import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from axformer.data.batches import Samples
from axformer.errors import ArtifactError, FormError
from axformer.forms.agreement import compare_outputs
from axformer.forms.facts import read_facts
from axformer.forms.files import common_keys, older_keys, write_model, write_tokenizer
from axformer.forms.form import CheckedForm, Form, NotMade
from axformer.forms.fresh import FreshPython, program_of
from axformer.forms.kinds import COMPACT, HUB, KINDS, ONNX, ONNX_FP16, ONNX_INT8, STOCK, ZEROED, Kind
from axformer.forms.onnx import write_onnx
from axformer.forms.onnx_fp16 import write_onnx_fp16
from axformer.forms.onnx_int8 import write_onnx_int8
from axformer.forms.selfcheck import check_difference, check_numbers, self_check
from axformer.forms.sentences import write_sentences
from axformer.forms.smoothing import some_inputs
from axformer.forms.stock import family_keys, stock
from axformer.forms.zeroed import zeroed
from axformer.intake.checkpoint import Checkpoint
from axformer.model.compact import untouched
from axformer.model.number_format import cast, computing_in
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan
from axformer.repair.refit import Refit
from axformer.wire.steps import Counter


@dataclass(frozen=True)
class Finished:
    """A finished model, from which forms are made."""

    checkpoint: Checkpoint
    """The checkpoint of the whole model."""
    plan: Plan
    model: Any
    """The compact model of the plan, in the number format of the checkpoint."""
    samples: Samples
    """Real inputs, on which every form must agree with the compact model."""
    fits: Refit | None = None
    """The weights that were fitted in closed form; None if none were."""
    is_trained: bool = False
    """Whether the compact model was trained, so that all its weights differ from the checkpoint's."""
    written: Mapping[str, Path] = field(default_factory=dict)
    """Directories of :func:`loaded_form` with a form of this very model, by name; they are copied, and not made again."""
    more: Sequence[Samples] = ()
    """More real inputs, for forms in half precision, which may overflow on some of them alone."""


def usual_forms(plan: Plan, dimensions: Dimensions) -> tuple[str, ...]:
    """The forms of a plan where no others are asked for; of a plan that only drops layers the first one needs no package."""
    return (STOCK, COMPACT) if plan.only_drops(dimensions) else (COMPACT,)


def python_for(checkpoint: Checkpoint, name: str) -> FreshPython:
    """The fresh process that checks the form of this name."""
    return FreshPython(program_of(name, checkpoint.head.auto_class.__name__))


def make_forms(
    finished: Finished,
    names: Collection[str],
    result: Path,
    begun: Mapping[str, FreshPython] = MappingProxyType({}),
    steps: Counter | None = None,
) -> list[Form | NotMade]:
    """Write forms into the directory of a result, each into its own subdirectory.

    Args:
        finished: the finished model.
        names: names from :data:`axformer.forms.kinds.KINDS`.
        result: the directory of the result.
        begun: processes of :func:`python_for` that were started earlier, by the names of their forms.
        steps: counts the forms; each is one part.

    Returns:
        Each form, or the reason why this model cannot have it: it cannot be made, does not load in a fresh process, or its
        outputs differ. The files of a form that was not made are deleted.

    Raises:
        ArtifactError: the compact form, which every model can have, is among them, and none but such for GPUs passed its check;
            or the model's own outputs are not numbers.
    """
    if any(KINDS[name].keeps_format for name in names):
        check_numbers(finished.model, finished.checkpoint.tokenizer, finished.samples.encoded)
    pythons = {name: begun.get(name) or python_for(finished.checkpoint, name) for name in KINDS}
    forms: list[Form | NotMade] = []
    for name, kind in KINDS.items():
        if name in names:
            if steps is not None:
                steps.advance(detail=f"making and checking the form {name}")
            forms.append(_made(finished, kind, result, pythons[name], forms))
    if COMPACT in names and not any(isinstance(form, Form) and not KINDS[form.name].for_gpu for form in forms):
        raise ArtifactError("; ".join(form.reason for form in forms if isinstance(form, NotMade)))
    return forms


def make_before(checkpoint: Checkpoint, names: Collection[str], samples: Samples) -> list[Form | NotMade]:
    """The untouched model in ONNX, as :func:`make_forms` writes it where nothing was removed, so that a result can be compared
    with what its runtime alone brings. It is loaded, and its files are gone.

    Args:
        names: the forms of the result; those that are not ONNX are left out.
        samples: real inputs.
    """
    wanted = [name for name in (ONNX, ONNX_INT8) if name in names]
    if not wanted:
        return []
    whole = untouched(checkpoint.model, checkpoint.architecture) or checkpoint.model
    finished = Finished(checkpoint, Plan.full(checkpoint.dimensions), whole, samples)
    forms: list[Form | NotMade] = []
    with tempfile.TemporaryDirectory(prefix="axformer-before-") as scratch:
        for name in wanted:
            try:
                forms.append(loaded_form(finished, name, Path(scratch)))
            except (FormError, ArtifactError) as error:
                forms.append(NotMade(name, str(error)))
    return forms


def loaded_form(finished: Finished, name: str, directory: Path) -> Form:
    """A form without its check in a fresh process, loaded from files that may go afterwards.

    Raises:
        FormError: this model cannot have it.
    """
    kind = KINDS[name]
    _WRITERS[name](finished, directory)
    place = directory / kind.directory
    return Form(name, kind.load(place, str(finished.model.device)), kind.bytes_in(place), None)


def _made(
    finished: Finished, kind: Kind, result: Path, python: FreshPython, before: Sequence[Form | NotMade]
) -> Form | NotMade:
    directory = result / kind.directory
    graph = next((form for form in before if form.name == ONNX), None)
    if kind.name in (ONNX_FP16, ONNX_INT8) and isinstance(graph, NotMade) and graph.failed:
        return NotMade(kind.name, f"it is made of the graph that failed its check: {graph.reason}", failed=True)
    try:
        _WRITERS[kind.name](finished, result)
        return _checked(finished, kind, directory, python)
    except (FormError, ArtifactError) as error:
        kind.remove(result)
        return NotMade(kind.name, str(error), failed=isinstance(error, ArtifactError))


def _checked(finished: Finished, kind: Kind, directory: Path, python: FreshPython) -> Form:
    """Check a written form: on some rows in a fresh process at its own precision, then on all data in float32, where
    differences cannot be due to rounding."""
    checkpoint, model = finished.checkpoint, finished.model
    with computing_in(model, checkpoint.dtype if kind.keeps_format else torch.float32):
        fresh = self_check(
            model,
            checkpoint.tokenizer,
            finished.samples.encoded,
            kind,
            directory,
            python,
            pooled=checkpoint.task.pooled,
        )
    loaded = kind.load(directory, str(model.device))
    form = Form(kind.name, loaded, kind.bytes_in(directory), None if kind.for_gpu else fresh)
    checked = [
        _agreeing(finished, kind, loaded, samples)
        for samples in (finished.samples, *(finished.more if kind.for_gpu else ()))
    ]
    return replace(form, checked=checked[0])


def _agreeing(finished: Finished, kind: Kind, loaded: Any, samples: Samples) -> CheckedForm:
    """Compare a form with the model in memory on all rows of a data set, and refuse it if it differs."""
    task, model = finished.checkpoint.task, finished.model
    with computing_in(model, torch.float32), computing_in(loaded, torch.float32):
        expected, agreements = compare_outputs(model, {kind.name: loaded}, task, samples)
    agreement = agreements[kind.name]
    what = f"form '{kind.name}': its logits over the data"
    check_difference(what, agreement.difference, kind.tolerance, agreement.largest)
    return CheckedForm(expected, agreement)


def _write_compact(finished: Finished, result: Path) -> None:
    write_model(finished.model, finished.checkpoint.companions, result / KINDS[COMPACT].directory)


def _write_stock(finished: Finished, result: Path) -> None:
    checkpoint = finished.checkpoint
    ordinary = stock(finished.model, checkpoint.head.model_class, checkpoint.architecture, finished.plan)
    write_model(cast(ordinary, checkpoint.dtype), checkpoint.companions, result / KINDS[STOCK].directory)


def _write_zeroed(finished: Finished, result: Path) -> None:
    checkpoint = finished.checkpoint
    if finished.is_trained:
        raise FormError(
            "there is no zeroed form of a model that was trained after its pass, since its weights are not the checkpoint's; "
            "take the compact or the ONNX form"
        )
    whole = zeroed(checkpoint.model, checkpoint.architecture, finished.plan, finished.fits)
    write_model(cast(whole, checkpoint.dtype), checkpoint.companions, result / KINDS[ZEROED].directory)


def _write_onnx(finished: Finished, result: Path) -> None:
    """The graph, in a directory that loaders of transformers' models open: its family's configuration, its tokenizer."""
    checkpoint, model, directory = finished.checkpoint, finished.model, result / HUB
    with computing_in(model, torch.float32):
        write_onnx(model, checkpoint.tokenizer, finished.samples.encoded, directory)
    keys = family_keys(model, checkpoint.head.model_class, checkpoint.architecture, finished.plan)
    more = common_keys(keys, checkpoint.model.config.attribute_map) | older_keys(keys)
    read_facts(directory).write(directory, {**checkpoint.companions.notes, **keys, **more})
    write_tokenizer(checkpoint.companions, directory)
    write_sentences(model, directory)


def _write_onnx_fp16(finished: Finished, result: Path) -> None:
    _write_from_graph(finished, result, write_onnx_fp16)


def _write_onnx_int8(finished: Finished, result: Path) -> None:
    """Quantize the graph, unless that was done before."""
    if ONNX_INT8 in finished.written and not KINDS[ONNX].is_in(result):
        shutil.copytree(finished.written[ONNX_INT8] / HUB, result / HUB, dirs_exist_ok=True)
        return
    inputs = some_inputs(finished.samples.encoded, finished.checkpoint.tokenizer)
    _write_from_graph(finished, result, partial(write_onnx_int8, inputs=inputs, threads=torch.get_num_threads()))


def _write_from_graph(finished: Finished, result: Path, write: Callable[[Path, Path], None]) -> None:
    """Write a form that is made of the ONNX form if that was written already, or else of a temporary one."""
    if KINDS[ONNX].is_in(result):
        write(result / HUB, result / HUB)
        return
    with tempfile.TemporaryDirectory(prefix="axformer-onnx-") as scratch:
        _write_onnx(finished, Path(scratch))
        write(Path(scratch) / HUB, result / HUB)


_WRITERS: Mapping[str, Callable[[Finished, Path], None]] = {
    STOCK: _write_stock,
    COMPACT: _write_compact,
    ZEROED: _write_zeroed,
    ONNX: _write_onnx,
    ONNX_FP16: _write_onnx_fp16,
    ONNX_INT8: _write_onnx_int8,
}
