"""The hidden states of a model: the residual stream after the embeddings and after each layer, as transformers counts them.

State 0 is what the lowest layer receives, state ``l`` what layer ``l`` receives, and the last one what the base model returns:
in families with a norm after the last layer, its output.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import Tensor

from axformer.architectures.base import Architecture

SeeState = Callable[[int, Tensor], None]
"""Receives the number of a state, and the state of shape (sequences, tokens, hidden)."""


@contextmanager
def watched_states(model: Any, architecture: Architecture, see: SeeState) -> Iterator[None]:
    """Inside the ``with`` block, call ``see`` with every hidden state of a prepared model, in order, as it is computed."""
    layers = architecture.layers(model)

    def of_layer(index: int, _: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        hidden = args[0] if args else kwargs["hidden_states"]
        see(index, hidden if architecture.token_axis == 1 else hidden.transpose(0, 1))

    with ExitStack() as undo:
        for index, layer in enumerate(layers):
            hook = layer.register_forward_pre_hook(partial(of_layer, index), with_kwargs=True)
            undo.callback(hook.remove)
        last = model.base_model.register_forward_hook(lambda _, __, output: see(len(layers), output[0]))
        undo.callback(last.remove)
        yield
