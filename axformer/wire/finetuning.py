"""Settings for fine-tuning after a pass."""

from pydantic import BaseModel, ConfigDict, Field


class FinetuneSettings(BaseModel):
    """Unknown settings and values out of range are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    epochs: int = Field(default=1, ge=1, le=100)
    """Number of epochs. A fine-tuned model overfits a task's data within two or three (section III-A), so the default is
    one."""
    learning_rate: float = Field(default=2e-5, gt=0.0, le=1.0)
    """Initial learning rate; it decays linearly to 0. The default is the smallest that BERT's authors fine-tune with."""
    batch_size: int = Field(default=32, ge=1, le=4096)
    """Rows per step, as BERT's authors use."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the order of rows and of dropout."""
