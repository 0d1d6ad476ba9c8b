"""How a model is fine-tuned after a pass, as a job says it."""

from pydantic import BaseModel, ConfigDict, Field


class FinetuneSettings(BaseModel):
    """Unknown settings and values out of range are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    epochs: int = Field(default=1, ge=1, le=100)
    """How often all rows are seen. A model that is already fine-tuned overfits a task's data within two or three (section
    III-A), so one."""
    learning_rate: float = Field(default=2e-5, gt=0.0, le=1.0)
    """Of the first step; it falls to 0 on a line. The least of those that BERT's authors fine-tune with."""
    batch_size: int = Field(default=32, ge=1, le=4096)
    """Rows of a step, as BERT's authors take."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Of the order of the rows, and of dropout."""
