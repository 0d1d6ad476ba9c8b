"""Writes a model with what came along with its checkpoint, so that the result is that checkpoint, only smaller."""

import json
from pathlib import Path
from typing import Any

from axformer.intake.companions import Companions
from axformer.intake.names import CONFIG, GENERATION_CONFIG


def write_model(model: Any, companions: Companions, directory: Path) -> None:
    """Write a model's weights and configuration, its tokenizer, chat template and settings of generation, and the notes of its
    configuration, in a directory that is made."""
    model.save_pretrained(directory)
    for name, content in companions.files.items():
        (directory / name).write_bytes(content)
    if companions.notes:
        path = directory / CONFIG
        known = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(companions.notes | known, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def write_tokenizer(companions: Companions, directory: Path) -> None:
    """Write a tokenizer and its chat template alone."""
    for name, content in companions.files.items():
        if name != GENERATION_CONFIG:
            (directory / name).write_bytes(content)
