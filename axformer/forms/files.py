"""Writes a model with the other files of its checkpoint, so that the result is the same checkpoint, only smaller."""

import json
from pathlib import Path
from typing import Any

from axformer.intake.companions import Companions
from axformer.intake.names import CONFIG, GENERATION_CONFIG


def write_model(model: Any, companions: Companions, directory: Path) -> None:
    """Write a model's weights and configuration with the configuration's notes, its tokenizer, chat template and generation
    settings. The directory is created."""
    model.save_pretrained(directory)
    for name, content in companions.files.items():
        (directory / name).write_bytes(content)
    if companions.notes:
        path = directory / CONFIG
        known = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(companions.notes | known, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def write_tokenizer(companions: Companions, directory: Path) -> None:
    """Write only a tokenizer and its chat template."""
    for name, content in companions.files.items():
        if name != GENERATION_CONFIG:
            (directory / name).write_bytes(content)
