"""What bounds the memory and the time of an analysis. Whatever they cut is said in the analysis."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportBounds:
    """The most that reports take; what is beyond is sampled with the seed."""

    rows: int = 2000
    """Rows of each data set. An analysis of a base-size model over as many is meant to take minutes."""
    positions: int = 20_000
    """Positions of each data set, in whole rows. On disk, a base-size model's then take 400 MB."""
    design_bytes: int = 256 * 2**20
    """Bytes of the float32 matrix that a probe is fitted on."""
    dimensions: int = 5000
    """Dimensions clustered together. Their correlations take 200 MB, and SciPy's distances as much again."""
    cka_positions: int = 5000
    """Positions that layers are compared on: several times as many as a layer is wide."""
    gradient_rows: int = 500
    """Rows that the importance of heads and the contribution of layers are measured on."""
    curve_rows: int = 400
    """Rows that each of the ten models without heads runs over, and both models of a drift."""
