"""Load a fine-tuned checkpoint, and check that the library supports it."""

import hashlib
from collections.abc import Iterable
from copy import copy as shallow_copy
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import torch
from huggingface_hub import snapshot_download
from safetensors.torch import save
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from axformer.architectures.base import Architecture
from axformer.architectures.embedder import pooled
from axformer.architectures.heads import Head
from axformer.architectures.registry import architecture_of
from axformer.data.padding import Padding, padding_of
from axformer.data.rows import Rows
from axformer.errors import CheckpointError, first_line, panics_as_errors
from axformer.intake.admission import Admitted, admit, check_loaded, loadable, names_of
from axformer.intake.companions import Companions, companion_files, tokenizer_files
from axformer.intake.label_names import ID2LABEL, LABEL2ID, label_maps, label_names
from axformer.intake.names import KNOWN_NAMES
from axformer.intake.objects import (
    check_tokenizer,
    check_weights,
    is_sentence_transformer,
    model_in,
    with_plain_switches,
    without_autocast,
)
from axformer.intake.references import what_to_write, why_no_directory
from axformer.intake.tokenizer_files import check_words, other_reading, unloadable
from axformer.intake.word_spaces import with_word_spaces
from axformer.model.number_format import format_of
from axformer.plan.elements import Dimensions
from axformer.tasks.base import Task
from axformer.tasks.registry import task_of
from axformer.wire.heads import NewHead
from axformer.wire.references import tidy

HUB_PREFIX = "hf://"
HUB_FILES = (*KNOWN_NAMES, "*/config.json", "*.safetensors")
READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Checkpoint:
    """A loaded model with everything that a pass needs to know about it."""

    model: Any
    """The model in float32, in evaluation mode, with hard attention available."""
    tokenizer: Any
    architecture: Architecture
    head: Head
    task: Task
    sha256: str
    """Digest of the weights."""
    bytes: int
    """Size of the weight files."""
    dtype: torch.dtype
    """The number format of the weight files, which results have too."""
    companions: Companions
    """Files that are copied into results."""
    directory: Path | None = None
    """Where it was loaded from; None if it was in memory."""
    notes: tuple[str, ...] = ()
    """What the user should know about how it was read."""

    @property
    def dimensions(self) -> Dimensions:
        """The counts that determine the model's elements."""
        return self.architecture.dimensions(self.model.config)

    @property
    def padding(self) -> Padding:
        """How inputs share a batch."""
        return padding_of(
            *(self.model.config, self.tokenizer),
            causal=self.architecture.causal,
            pooled=self.task.pooled,
            is_read=self.architecture.padding_side(self.model.config) is None,
        )

    def for_rows(self, rows: Rows, *, is_labelled: bool = True) -> "Checkpoint":
        """The checkpoint with the task that fits some rows, if the model's head allows several tasks, and for tags with words
        as the model knows them.

        Args:
            rows: the deciding rows; the returned checkpoint reads all other rows in the same way.
            is_labelled: whether their labels tell the task; lists of passages tell it without.

        Raises:
            DataError: their labels fit none of these tasks.
        """
        is_told = is_labelled or (self.head.auto_class is AutoModelForSequenceClassification and rows.are_lists)
        task = task_of(self.head.auto_class, self.model.config, rows if is_told else None)
        return with_word_spaces(replace(self, task=task), rows)


def load_checkpoint(
    reference: str | Path,
    device: str = "cpu",
    new_head: NewHead | None = None,
    seed: int = 0,
    pooling: str | None = None,
) -> Checkpoint:
    """Load a fine-tuned model and its tokenizer in float32, or a base model with a new head, which is not trained yet.

    Args:
        reference: a local directory, or ``hf://organisation/name`` for a model on the hub.
        new_head: the head that a base model gets; None for a fine-tuned model.
        seed: of the first weights of a new head.
        pooling: how a plain encoder becomes an embedder; None for any other checkpoint.

    Raises:
        CheckpointError: it is missing, damaged, of an unsupported family, or of a head or a task that is not supported.
    """
    admitted = admit(local_directory(str(reference)), new_head, pooling=pooling)
    directory = admitted.directory
    architecture = admitted.architecture
    with loadable(admitted) as known:
        model = load_model(admitted, known, seed)
        tokenizer = load_tokenizer(admitted, known)
        files = tokenizer_files(tokenizer, known) | companion_files(directory)
        note = other_reading(directory, architecture.model_type, admitted.tokenizer_class, known, tokenizer)
    weights = [*admitted.weights.files, *admitted.weights.behind]
    return _checkpoint(
        *(model.to(device), tokenizer, architecture, admitted.head),
        sha256=digest(weights),
        bytes=sum(path.stat().st_size for path in weights),
        dtype=admitted.weights.dtype,
        companions=Companions(files, admitted.notes),
        directory=directory,
        notes=() if note is None else (note,),
    )


def from_memory(model: Any, tokenizer: Any, pooling: str | None = None) -> Checkpoint:
    """Make a checkpoint from a copy of a model in memory.

    Args:
        model: of transformers, or a SentenceTransformer.
        tokenizer: the model's; None for a SentenceTransformer, which has its own.
        pooling: how an encoder becomes an embedder; None for a model with a head.

    Raises:
        WrongTypeError: model or tokenizer has the wrong type.
        CheckpointError: it is of an unsupported family, or of a head or a task that is not supported.
    """
    if is_sentence_transformer(model):
        with TemporaryDirectory(prefix="axformer-embedder-") as directory:
            model.save_pretrained(directory, create_model_card=False)
            return replace(load_checkpoint(directory, str(model.device), pooling=pooling), directory=None)
    model = model_in(model)
    check_tokenizer(tokenizer)
    architecture = architecture_of(model.config.model_type)
    if pooling is not None:
        model = pooled(model, architecture.base_class, pooling)
    head = architecture.head_of(model)
    if head is None:
        raise CheckpointError(
            f"a {type(model).__name__} has no supported head; fine-tune it as one of {names_of(architecture.heads)}, or where "
            "it embeds texts say how it is pooled, for example pooling='mean'"
        )
    copy = with_plain_switches(without_autocast(deepcopy(model)).float())
    _settle_labels(copy.config)
    settle_ties(copy)
    check_weights(copy, head)
    tokenizer = _padding_aside(shallow_copy(tokenizer), architecture, copy.config)
    weights = save(_weights_once(model))
    return _checkpoint(
        *(copy, tokenizer, architecture, head),
        sha256=hashlib.sha256(weights).hexdigest(),
        bytes=len(weights),
        dtype=format_of(model),
        companions=Companions(tokenizer_files(tokenizer), {}),
    )


def _checkpoint(model: Any, tokenizer: Any, architecture: Architecture, head: Head, **facts: Any) -> Checkpoint:
    """A checkpoint of a model whose inputs can share a batch, ready for a pass."""
    made = Checkpoint(model.eval(), tokenizer, architecture, head, task_of(head.auto_class, model.config), **facts)
    _ = made.padding  # raises before any work
    architecture.adopt(model)
    return made


def _padding_aside(tokenizer: Any, architecture: Architecture, config: Any) -> Any:
    """The tokenizer, padding where no head of an encoder looks; a decoder's batches are padded apart from it."""
    side = architecture.padding_side(config)
    if side is not None and not architecture.causal:
        tokenizer.padding_side = side
    return tokenizer


def _settle_labels(config: Any) -> None:
    """Make the two class maps of a config in memory agree, as is done for a file."""
    try:
        names = label_names({key: getattr(config, key) for key in (ID2LABEL, LABEL2ID)})
    except ValueError as error:
        raise CheckpointError(f"the model's configuration cannot be used: {error}; correct model.config") from None
    if names is not None:
        config.update(label_maps(names))


def digest(files: Iterable[Path]) -> str:
    """SHA-256 over the concatenated content of files, in hexadecimal."""
    total = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while part := file.read(READ_BYTES):
                total.update(part)
    return total.hexdigest()


def local_directory(reference: str) -> Path:
    """The directory of a checkpoint, fetched from the hub if it is there.

    Raises:
        CheckpointError: there is none.
    """
    if Path(reference).is_dir():
        return Path(reference)
    text = tidy(reference)
    if not text.startswith(HUB_PREFIX) or what_to_write(text, is_checkpoint=True):
        raise CheckpointError(f"checkpoint '{reference}' {why_no_directory(text)}")
    name, _, revision = text.removeprefix(HUB_PREFIX).partition("@")
    try:
        return Path(snapshot_download(name, revision=unquote(revision) or None, allow_patterns=list(HUB_FILES)))
    except Exception as error:  # noqa: BLE001 - of the hub, the network or the disk: all are about this reference
        raise CheckpointError(f"checkpoint '{reference}' cannot be fetched from the hub: {first_line(error)}") from None


def _weights_once(model: Any) -> dict[str, torch.Tensor]:
    """A model's weights with shared ones under their first name only, as safetensors requires."""
    kept = {}
    seen: set[int] = set()
    for name, weight in model.state_dict().items():
        if weight.numel() and weight.data_ptr() in seen:
            continue
        seen.add(weight.data_ptr())
        kept[name] = weight.contiguous()
    return kept


def load_model(admitted: Admitted, directory: Path, seed: int = 0) -> Any:
    """Load the model of an admitted checkpoint from a directory with known files alone, in float32.

    Args:
        seed: of the first weights of a new head.

    Raises:
        CheckpointError: it does not load, or weights are missing or not finite.
    """
    head = admitted.head
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model, info = head.model_class.from_pretrained(
                directory,
                config=admitted.config,
                dtype=torch.float32,
                local_files_only=True,
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # they are refused below with their names
                output_loading_info=True,
            )
    except Exception as error:  # noqa: BLE001 - transformers names many
        raise CheckpointError(
            f"checkpoint '{admitted.directory}' cannot be loaded: {first_line(error)}; copy it again"
        ) from None
    check_loaded(admitted, info, model.base_model_prefix)
    check_finite(admitted.directory, model)
    settle_ties(model)
    model.config._name_or_path = str(admitted.directory)
    return model


def load_tokenizer(admitted: Admitted, directory: Path) -> Any:
    """Load the tokenizer of an admitted checkpoint from such a directory.

    Raises:
        CheckpointError: it does not load.
    """
    try:
        with panics_as_errors():
            tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # noqa: BLE001 - transformers names many
        raise unloadable(admitted.directory, first_line(error)) from None
    check_words(admitted.directory, tokenizer)
    tokenizer.name_or_path = str(admitted.directory)
    return _padding_aside(tokenizer, admitted.architecture, admitted.config)


def check_finite(directory: Path, model: Any) -> None:
    """Check every weight of a loaded model. A single one that is not finite makes every loss of a pass NaN.

    Raises:
        CheckpointError: a weight is infinite or NaN.
    """
    for name, weight in model.named_parameters():
        if not _all_finite(weight):
            raise CheckpointError(
                f"checkpoint '{directory}' holds weights that are infinite or not numbers, in {name}; train it again, or save "
                "it in a type with a wider range than float16"
            )


def _all_finite(values: Tensor) -> bool:
    """Whether the least and the greatest are finite: neither is where any is not a number. One look, and nothing is copied."""
    return values.numel() == 0 or all(bool(end.isfinite()) for end in torch.aminmax(values))


def settle_ties(model: Any) -> None:
    """Correct the configuration of a loaded model with weights that should be one and are two.

    An adapter that was merged into the head leaves such a file, and the configuration goes on saying ``tie_word_embeddings``.
    Models built from it, as all results are, would put one in the place of the other. Its other pairs become two as well, since
    a configuration says the same of all.
    """
    pairs = model.get_expanded_tied_weights_keys(all_submodels=True)
    shared = {name for name, source in pairs.items() if model.get_parameter(name) is model.get_parameter(source)}
    if len(shared) == len(pairs):
        return
    model.config.tie_word_embeddings = False
    model.all_tied_weights_keys = {}
    for name in shared:
        module, _, own = name.rpartition(".")
        weight = model.get_parameter(name)
        setattr(model.get_submodule(module), own, nn.Parameter(weight.detach().clone(), weight.requires_grad))
