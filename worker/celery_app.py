"""The Celery side of the worker: ``celery -A worker.celery_app worker``.

PostgreSQL owns the jobs; a message only says "look again". It may be lost, doubled or late without harm, so every setting
here chooses the simplest delivery. This process imports no model library.
"""

from celery import Celery

from store.settings import Settings

settings = Settings.from_environment()

app = Celery(
    "axformer", broker=settings.broker_url.get_secret_value(), include=["worker.main.tasks", "worker.main.lifecycle"]
)
app.conf.update(
    task_default_queue=settings.celery_queue,
    # Messages carry no data, so only JSON is read and no results are kept.
    task_serializer="json",
    accept_content=["json"],
    task_ignore_result=True,
    # A message is taken when a slot is free and acknowledged at once: it has then served its purpose, and Redis has
    # nothing to redeliver while a job runs.
    task_acks_late=False,
    task_reject_on_worker_lost=False,
    worker_disable_prefetch=True,
    worker_prefetch_multiplier=1,
    # One job at a time, each in a fresh process that ends with it, so that all its resources are freed.
    worker_pool="prefork",
    worker_pool_start_method="spawn",
    worker_concurrency=1,
    worker_max_tasks_per_child=1,
    worker_proc_alive_timeout=60,  # seconds; on a busy machine a fresh interpreter takes more than the default of 4
    # A lost broker does not cancel a running job; the worker waits for it to return.
    worker_cancel_long_running_tasks_on_connection_loss=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={"health_check_interval": 25, "socket_connect_timeout": 5, "socket_keepalive": True},
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
)
