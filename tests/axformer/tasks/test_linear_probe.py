"""A linear probe tells apart what a plane can, and nothing that is not in the vectors."""

import numpy as np
import torch

from axformer.tasks.embedding import right_by_probe

ROWS, NUMBERS = 400, 32


def drawn(seed: int = 0) -> tuple[torch.Tensor, list[int]]:
    """Vectors around the centers of three classes."""
    chance = torch.Generator().manual_seed(seed)
    centers = torch.randn(3, NUMBERS, generator=chance)
    classes = torch.randint(3, (ROWS,), generator=chance)
    return centers[classes] + 0.5 * torch.randn(ROWS, NUMBERS, generator=chance), classes.tolist()


def test_classes_are_told_apart_where_they_lie_apart_and_guessed_elsewhere() -> None:
    vectors, classes = drawn()
    assert right_by_probe(vectors, classes, range(ROWS)).mean() > 0.98
    others = drawn(1)[0]
    assert right_by_probe(others, classes, range(ROWS)).mean() < 0.45
    assert right_by_probe(torch.zeros(ROWS, NUMBERS), classes, range(ROWS)).mean() < 0.45
    assert right_by_probe(torch.full((ROWS, NUMBERS), torch.nan), classes, range(ROWS)).mean() < 0.45


def test_no_rotation_and_no_shift_matters() -> None:
    vectors, classes = drawn()
    vectors = vectors + 4 * torch.randn(ROWS, NUMBERS, generator=torch.Generator().manual_seed(2))
    rotation = torch.linalg.qr(torch.randn(NUMBERS, NUMBERS, generator=torch.Generator().manual_seed(3))).Q
    found = right_by_probe(vectors, classes, range(ROWS))
    assert 0.5 < found.mean() < 1.0
    assert np.mean(found != right_by_probe(vectors @ rotation + 1.0, classes, range(ROWS))) < 0.02


def test_few_different_texts_of_a_class_give_no_figure() -> None:
    vectors, classes = drawn()
    copies = [0 if one == 0 else row for row, one in enumerate(classes)]
    assert np.isnan(right_by_probe(vectors, classes, copies)).all()


def test_a_copy_of_a_text_helps_nobody() -> None:
    chance = torch.Generator().manual_seed(4)
    once, classes = torch.randn(60, 200, generator=chance), torch.randint(2, (60,), generator=chance).tolist()
    texts = [*range(60)] * 5
    assert right_by_probe(once.repeat(5, 1), classes * 5, texts).mean() < 0.7
    apart = right_by_probe(once.repeat(5, 1), classes * 5, range(300)).mean()
    assert apart > 0.95, "which it would in another part"
