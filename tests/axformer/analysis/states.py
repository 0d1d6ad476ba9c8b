"""Hidden states made of random numbers."""

import numpy as np

from axformer.analysis.representations import Representations


def random_states(
    seed: int = 0, layers: int = 3, positions: int = 90, hidden: int = 8, noise: float = 0.5
) -> Representations:
    """States that follow from each other, as those of a model do."""
    draw = np.random.default_rng(seed)
    state = draw.normal(size=(positions, hidden)) + draw.normal(size=hidden)
    states = [state]
    for _ in range(layers):
        state = state @ np.linalg.qr(draw.normal(size=(hidden, hidden)))[0] + noise * draw.normal(size=state.shape)
        states.append(state)
    return Representations(np.stack(states).astype(np.float16), (1,) * positions)
