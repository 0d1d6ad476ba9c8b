"""Calls made up from the OpenAPI document, alone and one on what the other has answered, against an app that really runs.

Every answer must be one that the document has: no 5xx, no other status, media type, header or shape.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import schemathesis
from pydantic import SecretStr
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from api.main import create_app
from axformer.wire.scopes import Scope
from store.repositories.keys import create_key
from store.repositories.teams import create_team
from store.session import make_engine, make_sessions, session_scope
from store.setting_groups import RateSettings
from store.settings import Settings
from store.storage.storage import LocalStorage
from tests.api.conftest import Stage, trial
from tests.serving import serving

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
)
ALL_PHASES = ("examples", "coverage", "fuzzing", "stateful")
_ANSWER_SECONDS = 60.0
_CHAINS = 4
"""Chains of calls for each call of an operation; a chain is of few operations, and there are many orders."""
_KEY_SECONDS = 1
"""How long a key is used: calls revoke keys too, also the one they are made with."""


@dataclass
class Outcome:
    """What was called and what was wrong with the answers."""

    calls: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    """What to read, by operation and check."""


def make_calls(settings: Settings, *, seed: int, examples: int, phases: Sequence[str]) -> Outcome:
    """One round of calls of a new team that has jobs in most states. ``examples`` are the calls of an operation and a phase."""
    outcome = Outcome()
    quiet = settings.model_copy(update={"rate": RateSettings(requests=0, refusals=0)})
    engine = make_engine(settings)
    sessions = make_sessions(engine)
    with session_scope(sessions) as session:
        team_id = create_team(session, f"callers {seed}").id
    stage = Stage(sessions, LocalStorage(settings.storage_dir), team_id)
    stage.succeeded({"plan.json": b"{}", "model/config.json": b"{}"}, [trial(seq) for seq in range(3)])
    stage.failed()
    stage.running([trial(0)])
    stage.queued(webhook={"url": "https://ci.acme.example/axformer", "events": ["job.created"]})

    class Key:
        """A key of the team, and soon another one."""

        def get(self, case, context):
            with session_scope(sessions) as session:
                return create_key(session, team_id, "contract", Scope.ADMIN).text

        def set(self, case, data, context):
            case.headers = {**(case.headers or {}), "Authorization": f"Bearer {data}"}

    with serving(create_app(quiet)) as url:
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json", config=_config(seed, examples, phases))
        schema.auth(refresh_interval=_KEY_SECONDS)(Key)
        for event in from_schema(schema).execute():
            _note(outcome, event)
    engine.dispose()
    return outcome


def _config(seed: int, examples: int, phases: Sequence[str]) -> SchemathesisConfig:
    return SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "request-timeout": _ANSWER_SECONDS,
            "continue-on-failure": True,
            "suppress-health-check": ["all"],  # how fast values are made up says nothing of the service
            "generation": {
                "max-examples": examples,
                "database": "none",
                "no-shrink": True,
                "with-security-parameters": False,
            },
            "checks": {"enabled": False} | {name: {"enabled": True} for name in CHECKS},
            "phases": {name: {"enabled": name in phases} for name in ALL_PHASES}
            | {"stateful": {"enabled": "stateful" in phases, "generation": {"max-examples": _CHAINS * examples}}},
        }
    )


def _note(outcome: Outcome, event: events.EngineEvent) -> None:
    if isinstance(event, events.FatalError):
        raise event.exception
    if isinstance(event, events.NonFatalError):
        outcome.failures[f"{event.label}: {event.phase.value}"] = str(event.value)
    if not isinstance(event, events.ScenarioFinished):
        return
    for case_id, interaction in event.recorder.interactions.items():
        outcome.calls += 1
        outcome.phases[event.phase.value] += 1
        if case_id in event.recorder.cases:
            outcome.operations[event.recorder.cases[case_id].value.operation.label] += 1
        if interaction.response is not None:
            outcome.statuses[interaction.response.status_code] += 1
    for checks in event.recorder.checks.values():
        for check in checks:
            if check.failure_info is not None:
                failure = check.failure_info.failure
                outcome.failures.setdefault(
                    f"{failure.operation}: {check.name}", f"{failure.message}\n{check.failure_info.code_sample}"
                )


def settings_at(database_url: str, broker_url: str, var_dir: object) -> Settings:
    """Settings with short waits."""
    return Settings(
        database_url=SecretStr(database_url),
        broker_url=SecretStr(broker_url),
        var_dir=var_dir,
        event_poll_seconds=0.05,
        queue_view_seconds=0,
    )
