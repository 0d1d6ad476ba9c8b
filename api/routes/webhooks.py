"""``/v1/webhook-secrets`` and ``/v1/jobs/{id}/deliveries``: the secrets that sign messages, and the deliveries."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import AdminDep, CallerDep, SessionDep, SettingsDep, WriterDep
from api.http.paging import MOST_NUMBER, LimitDep
from api.openapi import answers
from api.services import jobs, webhooks
from api.views.jobs import fields_of
from api.views.rows import delivery_read, page_after
from axformer.wire.base import PageRead
from axformer.wire.webhooks import DeliveryRead, WebhookSecretCreated, WebhookSecretList, WebhookSecretRead
from store.repositories.audit import note
from store.repositories.deliveries import deliveries_after, valid_secrets

router = APIRouter(tags=["webhooks"])


@router.post(
    "/webhook-secrets",
    summary="Create a webhook secret",
    status_code=201,
    responses=answers(201, "The secret, shown only once.", "webhook_secret", 401),
)
def post_secret(caller: AdminDep, session: SessionDep, settings: SettingsDep) -> WebhookSecretCreated:
    """Create a secret that signs your team's webhooks, the first or a new one.

    The previous one also signs for a day, so that receivers can switch without a gap; older ones stop signing.
    """
    made = webhooks.create_secret(session, settings, caller)
    return fields_of(WebhookSecretCreated, made.row, secret=made.text)


@router.get(
    "/webhook-secrets",
    summary="List webhook secrets",
    responses=answers(200, "The secrets that sign now, without their text.", "webhook_secrets", 401),
)
def list_secrets(caller: CallerDep, session: SessionDep) -> WebhookSecretList:
    """List your team's secrets, the newest first."""
    rows = valid_secrets(session, caller.team_id)
    return WebhookSecretList(data=[fields_of(WebhookSecretRead, row) for row in rows])


@router.delete(
    "/webhook-secrets/{secret_id}",
    summary="Delete a webhook secret",
    status_code=204,
    responses=answers(204, "The secret is gone.", None, 401, 404),
)
def delete_secret(secret_id: str, caller: AdminDep, session: SessionDep) -> None:
    """Delete a secret, which stops signing at once; for a secret that has leaked."""
    webhooks.delete_secret(session, caller, secret_id)


@router.get(
    "/jobs/{job_id}/deliveries",
    summary="List a webhook's deliveries",
    responses=answers(200, "The messages, oldest first.", "deliveries", 401, 404, 422),
)
def list_deliveries(
    job_id: str,
    caller: CallerDep,
    session: SessionDep,
    limit: LimitDep,
    after: Annotated[int, Query(ge=0, le=MOST_NUMBER, description="Number of the last event seen.")] = 0,
) -> PageRead[DeliveryRead, int]:
    """See the deliveries of a job's webhook: attempts, the last status, the time of the next attempt, or `dead`."""
    job = jobs.find(session, caller.team_id, job_id)
    page = deliveries_after(session, job.id, after=after, limit=limit.page)
    return page_after([delivery_read(delivery) for delivery in page.items], after, has_more=page.has_more)


@router.post(
    "/jobs/{job_id}/deliveries/{delivery_id}/redeliver",
    summary="Send a message again",
    status_code=202,
    responses=answers(202, "The message is sent again.", "delivery", 401, 404),
)
def redeliver(job_id: str, delivery_id: str, caller: WriterDep, session: SessionDep) -> DeliveryRead:
    """Send a message again with all its attempts, whatever its state, under the same `webhook-id`."""
    job = jobs.find(session, caller.team_id, job_id)
    delivery = webhooks.send_again(session, job, delivery_id)
    note(session, caller, "delivery.redeliver", delivery_id)
    return delivery_read(delivery)
