"""The api's process stays small: it never loads what only workers need."""

import subprocess
import sys

import pytest

FORBIDDEN = ("torch", "transformers", "safetensors", "worker")


@pytest.mark.slow
def test_the_app_is_made_without_the_workers_libraries(settings):
    code = (
        "import sys; from api.main import create_app; from store.settings import Settings; "
        f"app = create_app(Settings(database_url={settings.database_url.get_secret_value()!r})); app.openapi(); "
        f"print([name for name in {FORBIDDEN} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
