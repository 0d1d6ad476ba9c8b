"""The examples of the OpenAPI document. A test holds them against the schemas."""

from typing import Any

from axformer import __version__
from axformer.data.columns import Columns

JOB_ID = "job_0199d1c2a4b37c5f8e21d3b4a5968778"
_OTHER_ID = "job_0199d1c2a4b37c5f8e21d3b4a5968779"
UPLOAD_ID = "upl_0199d1c2a4b37c5f8e21d3b4a5968778"
_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_TIME = "2026-11-21T11:01:41.123456Z"

JOB: dict[str, Any] = {
    "id": JOB_ID,
    "kind": "pass",
    "exported_from": None,
    "upto": None,
    "name": "reviews, nightly",
    "state": "running",
    "outcome": None,
    "status_reason": None,
    "checkpoint": {"uri": "hf://acme/bert-reviews@main"},
    "validation": {
        "uri": "s3://acme-data/reviews/dev.jsonl",
        "columns": {**Columns().model_dump(), "text": "sentence"},
    },
    "test": {"uri": f"upload:{UPLOAD_ID}"},
    "calibrate": None,
    "train": None,
    "finetune": None,
    "against": None,
    "analysis": None,
    "head": None,
    "preset": "paper",
    "config": {"refine_margin": 1.2, "majority_fraction": 0.5},
    "priority": 0,
    "device": "any",
    "forms": ["compact"],
    "labels": {"project": "reviews"},
    "webhook": {"url": "https://ci.acme.example/axformer", "events": ["job.succeeded", "job.failed"]},
    "deliver": None,
    "attempt": 1,
    "max_attempts": 3,
    "error": None,
    "progress": {
        "done": 41,
        "known": 126,
        "seconds": 18.2,
        "seconds_left": 37.7,
        "base_loss": 0.4821,
        "first_look": "872 rows, 51 % positive / 49 % negative, labels read as names of classes; the untouched model: "
        "accuracy 0.7844, loss 0.4821 (guessing: accuracy 0.5092, loss 0.6931)",
        "min_loss": 0.4467,
        "operations": 1734967296000,
        "estimated_speedup": 1.21,
    },
    "report": None,
    "findings": None,
    "queue": None,
    "created_at": _TIME,
    "started_at": _TIME,
    "finished_at": None,
    "cancel_requested_at": None,
    "links": {
        "self": f"/v1/jobs/{JOB_ID}",
        "trace": f"/v1/jobs/{JOB_ID}/trace",
        "path": f"/v1/jobs/{JOB_ID}/path",
        "events": f"/v1/jobs/{JOB_ID}/events",
        "artifacts": f"/v1/jobs/{JOB_ID}/artifacts",
        "deliveries": f"/v1/jobs/{JOB_ID}/deliveries",
        "cancel": f"/v1/jobs/{JOB_ID}/cancel",
        "pause": f"/v1/jobs/{JOB_ID}/pause",
        "resume": f"/v1/jobs/{JOB_ID}/resume",
        "retry": f"/v1/jobs/{JOB_ID}/retry",
        "deliver": f"/v1/jobs/{JOB_ID}/deliver",
    },
}
JOBS = {"data": [JOB], "has_more": False, "next": f"{JOB_ID}@1795258901123456"}
TRIAL = {
    "seq": 7,
    "phase": "block",
    "element": "layer.5.ffn",
    "loss": 0.4467,
    "loss_is_bound": False,
    "helped": 612,
    "samples": 1043,
    "total": 1043,
    "min_loss": 0.4821,
    "verdict": "accept",
    "precision": "float32",
    "parameters": 1181568,
    "seconds": 3.1,
}
TRACE = {"data": [TRIAL], "has_more": True, "next": 7}
_UNTOUCHED = {
    "seq": 0,
    "element": None,
    "loss": 0.4821,
    "confirming": {"loss": 0.4903, "accuracy": 0.79},
    "test": {"loss": 0.4881, "accuracy": 0.788},
    "parameters": 22714754,
    "encoder_parameters": 10646784,
    "operations": 2099310428160,
    "encoder_operations": 2099300523008,
    "estimated_speedup": 1.0,
    "estimated_latency_ms": 17.49,
    "kept": False,
}
PATH = {
    "kept": 7,
    "data": [
        _UNTOUCHED,
        _UNTOUCHED
        | {
            "seq": 7,
            "element": "layer.5.ffn",
            "loss": 0.4467,
            "confirming": {"loss": 0.4716, "accuracy": 0.8},
            "test": {"loss": 0.4742, "accuracy": 0.793},
            "parameters": 21533186,
            "encoder_parameters": 9465216,
            "operations": 1734967296000,
            "encoder_operations": 1734957390848,
            "estimated_speedup": 1.21,
            "estimated_latency_ms": 14.45,
            "kept": True,
        },
    ],
}
PLAN = {
    "format": "axformer-plan/1",
    "source": {"model_type": "bert", "sha256": _SHA256},
    "config": {"attention_top_k": 30, "refine_margin": 1.2},
    "layers": [
        {"attention": True, "heads": [0, 1, 3], "ffn": True, "neurons": [[0, 1408]], "hard_attention": None},
        {"attention": True, "heads": [0, 1, 2, 3], "ffn": False, "neurons": [], "hard_attention": 30},
    ],
}
EVENT = {"seq": 2, "type": "job.fetching", "data": {"state": "fetching", "attempt": 1}, "created_at": _TIME}
EVENTS = {"data": [EVENT], "has_more": False, "next": 2}
ARTIFACTS = {
    "data": [
        {
            "name": "model/model.safetensors",
            "sha256": _SHA256,
            "bytes": 61_203_448,
            "media_type": "application/octet-stream",
            "created_at": _TIME,
            "url": f"/v1/jobs/{JOB_ID}/artifacts/model/model.safetensors",
        }
    ]
}
UPLOAD = {
    "id": UPLOAD_ID,
    "uri": f"upload:{UPLOAD_ID}",
    "filename": "dev.jsonl",
    "sha256": _SHA256,
    "bytes": 182_344,
    "created_at": _TIME,
}
QUEUE = {
    "data": [
        {
            "id": JOB_ID,
            "name": "reviews, nightly",
            "state": "queued",
            "device": "gpu",
            "position": 3,
            "ahead": [{"team": "nlp", "jobs": 1}, {"team": None, "jobs": 1}],
            "waits_for": "turn",
            "reason": "the job starts when a worker is free and the jobs ahead have begun",
            "starts_in_seconds": 95.0,
            "ends_in_seconds": 215.0,
        }
    ],
    "counts": {
        "queued": 2,
        "fetching": 0,
        "validating": 0,
        "running": 0,
        "packaging": 0,
        "pausing": 0,
        "paused": 0,
        "cancelling": 0,
        "succeeded": 12,
        "failed": 1,
        "cancelled": 0,
    },
    "queued_of_all_teams": 3,
    "workers_alive": 2,
    "workers_busy": 2,
    "workers": [{"queue": "axformer", "device": "gpu", "alive": 2, "busy": 2}],
    "eta_method": "Running jobs: known trials left times the measured seconds a trial. Queued jobs: given in queue order.",
    "as_of": _TIME,
}
BULK = {
    "data": [
        {"id": JOB_ID, "state": "cancelled", "error": None},
        {
            "id": _OTHER_ID,
            "state": "succeeded",
            "error": {
                "code": "wrong_state",
                "detail": f"{_OTHER_ID}: a job that is succeeded cannot become cancelled; it can become nothing else",
            },
        },
    ],
    "has_more": False,
}
_SECRET = {"id": "whs_0199d1c2a4b37c5f8e21d3b4a5968778", "created_at": _TIME, "expires_at": None}
DELIVERY = {
    "id": "msg_0199d1c2a4b37c5f8e21d3b4a5968778",
    "seq": 7,
    "type": "job.succeeded",
    "url": "https://ci.acme.example/axformer",
    "state": "pending",
    "attempts": 2,
    "last_status": 502,
    "last_error": "the receiver answered with status 502",
    "attempted_at": _TIME,
    "next_at": _TIME,
    "created_at": _TIME,
}
KEY = {
    "id": "5f0c2a9e71d4b836",
    "name": "nightly pipeline",
    "scopes": ["read", "write"],
    "created_at": _TIME,
    "expires_at": None,
    "last_used_at": _TIME,
    "revoked_at": None,
    "replaced_by": None,
}
_NEW_KEY = KEY | {"last_used_at": None, "key": f"axk_{KEY['id']}_{32 * '0d'}"}
_OLD_KEY = KEY | {"id": "0be47d1936a2c85f", "expires_at": _TIME, "replaced_by": KEY["id"]}
AUDIT = {
    "id": 31,
    "at": _TIME,
    "key_id": KEY["id"],
    "action": "job.cancel",
    "object_id": JOB_ID,
    "address": "203.0.113.7",
    "times": 1,
}
_REFUSED = AUDIT | {"id": 30, "action": "key.refused", "object_id": None, "times": 12}
KNOBS = {
    "knobs": [
        {
            "name": "refine_margin",
            "default": 1.1,
            "reason": "If a kept block's loss is below this many times the smallest loss, its parts are tried.",
            "accepts": {"type": "number", "minimum": 1.0, "maximum": 100.0},
        }
    ],
    "presets": {"paper": {"refine_margin": 1.1}, "published": {"refine_margin": 1.1}},
    "default_preset": "robust",
}
HEALTH = {"status": "ok", "version": __version__}
READY = {"status": "ok", "database": "ok", "migrations": "ok", "broker": "ok"}

EXAMPLES: dict[str, Any] = {
    "job": JOB,
    "jobs": JOBS,
    "trace": TRACE,
    "path": PATH,
    "plan": PLAN,
    "events": EVENTS,
    "artifacts": ARTIFACTS,
    "upload": UPLOAD,
    "queue": QUEUE,
    "bulk": BULK,
    "webhook_secret": _SECRET | {"secret": "whsec_" + 43 * "A" + "="},
    "webhook_secrets": {"data": [_SECRET]},
    "delivery": DELIVERY,
    "deliveries": {"data": [DELIVERY], "has_more": False, "next": 7},
    "key": _NEW_KEY,
    "key_rotated": _NEW_KEY | {"replaces": _OLD_KEY},
    "keys": {"data": [KEY, _OLD_KEY], "has_more": False, "next": _OLD_KEY["id"]},
    "me": {"team": {"id": "team_0199d1c2a4b37c5f8e21d3b4a5968778", "name": "crew"}, "key": KEY},
    "audit": {"data": [AUDIT, _REFUSED], "has_more": False, "next": 30},
    "knobs": KNOBS,
    "health": HEALTH,
    "ready": READY,
    "not_ready": READY | {"status": "unavailable", "broker": "does not answer (OperationalError)"},
}
"""By the names that the routes use."""
