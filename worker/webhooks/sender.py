"""Send one message to an untrusted address, with the same safeguards as fetching, and return the outcome.

The body of the answer is not read, redirects are not followed, and the whole attempt has one deadline: otherwise a receiver
that answers byte by byte could hold its sender indefinitely.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import httpx2
from standardwebhooks import Webhook

from store.repositories.deliveries import Attempt
from store.tables.webhooks import Delivery
from worker.fetching.addresses import PinnedTransport
from worker.fetching.deadline import Deadline
from worker.fetching.errors import ReferenceForbidden, SourceUnavailable
from worker.fetching.policy import FetchPolicy

_AGENT = "axformer-webhooks/1"


def send(message: Delivery, secrets: Sequence[str], policy: FetchPolicy, seconds: float) -> Attempt:
    """Send a message once. Errors of the receiver or the network do not raise.

    Args:
        secrets: those that sign it.
        policy: which addresses may be sent to.
        seconds: most time from the first connection on.
    """
    with (
        Deadline(seconds) as deadline,
        httpx2.Client(transport=PinnedTransport(policy), timeout=seconds, trust_env=False) as client,
    ):
        try:
            request = client.build_request(
                "POST",
                message.url,
                content=message.body.encode(),
                headers=_headers(message, secrets),
                extensions={"trace": deadline.trace},
            )
            response = client.send(request, stream=True, follow_redirects=False)
            response.close()
        except (ReferenceForbidden, SourceUnavailable) as error:
            return Attempt(None, f"not sent: {error}")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            if deadline.is_over or isinstance(error, httpx2.TimeoutException):
                return Attempt(None, f"the receiver did not answer within {seconds:g} s")
            return Attempt(None, f"the receiver cannot be reached: {type(error).__name__}: {error}")
        return _judged(response)


def _headers(message: Delivery, secrets: Sequence[str]) -> dict[str, str]:
    now = datetime.now(UTC)
    return {
        "Content-Type": "application/json",
        "User-Agent": _AGENT,
        "webhook-id": message.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signatures(secrets, message.id, now, message.body),
    }


def signatures(of: Sequence[str], message_id: str, at: datetime, body: str) -> str:
    """The ``webhook-signature`` header: one signature for each secret that is valid now, separated by spaces.

    Args:
        message_id: the ``webhook-id``.
        at: the ``webhook-timestamp``, in UTC.
    """
    return " ".join(Webhook(secret).sign(message_id, at, body) for secret in of)


def _judged(response: httpx2.Response) -> Attempt:
    status = response.status_code
    if response.is_success:
        return Attempt(status, None)
    if response.is_redirect:
        return Attempt(
            status, f"the receiver redirects (status {status}), which is not followed; give its final address"
        )
    return Attempt(status, f"the receiver answered with status {status}")
