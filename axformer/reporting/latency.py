"""What a pass has of its gain in latency from removing parts, and what the compact class gives without."""


def without_removal(before: float, one_position: float, after: float) -> str:
    """The change of the latency, and how much of it is there where nothing is removed.

    Args:
        before: of the untouched model, in any unit.
        one_position: of the same in the class of the compact one, which computes its last layer at one position.
        after: of the compact model.
    """
    return (
        f"Latency {share(before, after)}, of which {share(before, one_position)} by computing the last layer at one position, "
        "which removes nothing"
    )


def share(before: float, after: float) -> str:
    """A change in per cent."""
    return f"{after / before - 1:+.1%}"
