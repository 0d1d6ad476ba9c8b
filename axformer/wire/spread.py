"""A figure of several runs: their mean, how far they are apart, and how sure the mean is."""

from pydantic import BaseModel, ConfigDict, Field


class Spread(BaseModel):
    """A figure over several runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int = Field(description="Runs that have the figure.")
    mean: float
    deviation: float | None = Field(description="Standard deviation of a run (n - 1); null of a single one.")
    interval: tuple[float, float] | None = Field(
        description="The 95 % interval of the mean by Student's t, as if runs spread normally; null of a single one."
    )
