"""What is light stays light: a program that only names axformer, and the api, load no model library."""

import subprocess
import sys

HEAVY = ("torch", "transformers", "safetensors", "pyarrow")


def loaded_after(code: str) -> set[str]:
    """The packages that a fresh Python has loaded after this code."""
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", f"{code}; {report}"], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


def test_importing_axformer_loads_no_model_library():
    assert not loaded_after("import axformer").intersection(HEAVY)


def test_the_contracts_of_the_library_load_no_model_library():
    rooms = (
        "plan.plan",
        "methods.axformer.progress",
        "methods.axformer.ordering",
        "methods.axformer.acceptance",
        "data.columns",
        "drawing.chart",
        "drawing.curve",
        "drawing.picture",
    )
    code = "; ".join(f"import axformer.{name}" for name in rooms)
    assert not loaded_after(code).intersection(HEAVY)


def test_the_worker_s_celery_process_loads_no_model_library(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@localhost/none")
    monkeypatch.setenv("BROKER_URL", "redis://localhost:1")
    assert not loaded_after("import worker.celery_app, worker.main.lifecycle").intersection(HEAVY)


def test_importing_the_api_loads_neither_torch_nor_the_worker():
    loaded = loaded_after("import api.main")
    assert "api" in loaded
    assert not loaded.intersection({"torch", "transformers", "safetensors", "worker"})
