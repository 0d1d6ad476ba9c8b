"""Which columns of a data file hold what."""

from pydantic import BaseModel, ConfigDict


class Columns(BaseModel):
    """Names of the columns to read; ``text_pair`` is read where the file has it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = "text"
    text_pair: str = "text_pair"
    label: str = "label"
