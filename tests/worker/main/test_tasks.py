import os
import subprocess
import sys

from store.settings import Settings

MAIN_PROCESS = """
import sys
import worker.celery_app, worker.main.lifecycle, worker.main.tasks
conf = worker.celery_app.app.conf
print("torch" in sys.modules, conf.worker_pool_start_method, conf.accept_content, conf.task_default_queue)
"""


def test_the_main_process_imports_no_model_library(settings: Settings) -> None:
    environment = os.environ | {"DATABASE_URL": settings.database_url.get_secret_value(), "AXFORMER_CELERY_QUEUE": "q"}
    command = [sys.executable, "-c", MAIN_PROCESS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "False spawn ['json'] q"
