"""The form filled in with the demo's model and data, where they lie on this machine and the service may read them."""

from pathlib import Path

from api.pages.job_form import JobForm
from store.settings import Settings

_FOLDER = "demo"
_PARTS = {"checkpoint": "checkpoint", "validation": "validation.jsonl", "test": "test.jsonl"}


def demo_form(settings: Settings) -> JobForm | None:
    """The form; None where the demo has not been made, or its directory is not opened for ``file://``."""
    folder = Path(settings.var_dir).resolve() / _FOLDER
    is_open = any(folder.is_relative_to(root.resolve()) for root in settings.file_roots)
    if not is_open or not all((folder / part).exists() for part in _PARTS.values()):
        return None
    values = {name: f"file://{folder / part}" for name, part in _PARTS.items()}
    return JobForm(values | {"name": "demo: movie reviews", "goal": "within-points", "goal.within-points": "4"})
