"""Make a model's configuration say whether its embeddings and its language model head are one.

A file may hold two that differ where ``config.json`` says ``tie_word_embeddings``: an adapter that was merged into the head
leaves such a file. transformers then loads both, and the configuration goes on saying that they are one. Models built from
that configuration, as all results are, would put one in the place of the other.
"""

from typing import Any

from torch import nn


def settle_ties(model: Any) -> None:
    """Correct the configuration of a loaded model with weights that should be one and are two.

    Its other pairs become two as well, since a configuration says the same of all.
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
