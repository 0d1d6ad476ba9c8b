"""The Celery side of the worker: ``celery -A worker.celery_app worker``.

PostgreSQL owns the jobs; a message says no more than "look again". So a message may be lost, doubled or late without
harm, and every setting here goes for the simplest delivery. No model library is imported in this process.
"""

from celery import Celery

from store.settings import Settings

settings = Settings.from_environment()

app = Celery("axformer", broker=settings.broker_url.get_secret_value(), include=["worker.tasks", "worker.lifecycle"])
app.conf.update(
    task_default_queue=settings.celery_queue,
    # Messages carry nothing, so nothing but JSON is read and no results are kept.
    task_serializer="json",
    accept_content=["json"],
    task_ignore_result=True,
    # A message is taken when a slot is free and acknowledged when it is taken: it has then done all it can, and Redis
    # has nothing to deliver again while a job runs.
    task_acks_late=False,
    task_reject_on_worker_lost=False,
    worker_disable_prefetch=True,
    worker_prefetch_multiplier=1,
    # One job at a time in a process of its own, begun afresh and not used for a second job, so that all that it holds is
    # surely given back at its end.
    worker_pool="prefork",
    worker_pool_start_method="spawn",
    worker_concurrency=1,
    worker_max_tasks_per_child=1,
    worker_proc_alive_timeout=60,  # seconds; a fresh interpreter on a busy machine takes more than the usual 4
    # A broker that goes away takes no running job with it, and is waited for.
    worker_cancel_long_running_tasks_on_connection_loss=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={"health_check_interval": 25, "socket_connect_timeout": 5, "socket_keepalive": True},
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
)
