"""How much of the gain in latency comes from the compact class alone, without any removal."""


def without_removal(before: float, one_position: float, after: float) -> str:
    """Describe the change in latency, and the part of it that needs no removal.

    Args:
        before: latency of the untouched model, in any unit.
        one_position: its latency in the compact model's class, which computes the last layer at one position.
        after: latency of the compact model.
    """
    return (
        f"Latency {share(before, after)}, of which {share(before, one_position)} by computing the last layer at one position, "
        "which removes nothing"
    )


def share(before: float, after: float) -> str:
    """The relative change in per cent."""
    return f"{after / before - 1:+.1%}"
