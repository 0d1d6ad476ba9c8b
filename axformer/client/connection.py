"""Requests to the service: retried if that is safe, with refusals as exceptions."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from http import HTTPStatus
from ipaddress import ip_address
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

import httpx2
from pydantic import ValidationError

from axformer.client.address import Address
from axformer.client.errors import RefusedError, UnexpectedAnswerError, UnreachableError, refusal_class
from axformer.client.patience import Patience
from axformer.wire.base import Shape, read_answer

PREFIX = "/v1"
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
"""The request has not reached the service."""


class Connection:
    """Connections to one service with one key, kept open between requests. Threads may share it."""

    def __init__(self, address: Address, patience: Patience) -> None:
        self.patience = patience
        self.url = address.url
        trust_env = not _is_this_machine(address.url)
        self._http = httpx2.Client(
            base_url=address.url + PREFIX,
            headers={"Authorization": f"Bearer {address.api_key}"},
            timeout=httpx2.Timeout(patience.answer, connect=patience.connect),
            trust_env=trust_env,
            verify=_certificates(trust_env),
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def ask(self, method: str, path: str, *, again: bool = True, **request: Any) -> httpx2.Response:
        """Send a request and read the whole answer.

        Args:
            method: of the request.
            path: below ``/v1``.
            again: whether to retry even if the service may have acted.
            request: ``params``, ``json``, ``files``, ``headers``, as for httpx2.

        Raises:
            RefusedError: the service answered with a problem.
            UnreachableError: the service did not answer, even after retries.
        """

        def once() -> httpx2.Response:
            with self.open(method, path, **request) as answer, reading(answer):
                answer.read()
            return answer

        return self.patience.persist(once, again=again)

    def read(self, shape: type[Shape], method: str, path: str, **request: Any) -> Shape:
        """Send a request and read the answer as ``shape``; raises what :meth:`ask` raises.

        Raises:
            UnexpectedAnswerError: the answer has another form.
        """
        answer = self.ask(method, path, **request)
        with reading(answer):
            return read_answer(shape, answer.content)

    @contextmanager
    def open(self, method: str, path: str, follow: bool = False, **request: Any) -> Iterator[httpx2.Response]:
        """Send a request once, and yield the answer before its body is read. To ``follow`` a redirect to another host, the
        key is left out.

        Raises:
            RefusedError: the service answered with a problem.
            UnreachableError: the service did not answer.
        """
        built = self._http.build_request(method, path, **request)
        try:
            answer = self._http.send(built, stream=True, follow_redirects=follow)
        except httpx2.TransportError as error:
            message = (
                f"{self.url} does not answer: {error or type(error).__name__}; check the address, or try again later"
            )
            raise UnreachableError(message, may_have_acted=not isinstance(error, _NOT_SENT)) from error
        with closing(answer):
            if not answer.is_success:
                with reading(answer):
                    answer.read()
                raise _refusal(answer)
            yield answer


@cache
def _certificates(trust_env: bool) -> SSLContext:
    """The certificates that are trusted, read once for all connections: that takes longer than most requests."""
    return httpx2.create_ssl_context(trust_env=trust_env)


def _is_this_machine(url: str) -> bool:
    """Whether the address is on this machine, which a proxy could not reach."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def reading(answer: httpx2.Response) -> Iterator[None]:
    """Let what goes wrong while an answer is read be an error of the service.

    Raises:
        UnreachableError: the answer broke off.
        UnexpectedAnswerError: it has another form.
    """
    try:
        yield
    except httpx2.SSEError as error:  # a kind of TransportError
        raise UnexpectedAnswerError(f"{answer.request.url}: {error}") from error
    except (httpx2.TransportError, httpx2.DecodingError) as error:
        message = (
            f"{answer.request.method} {answer.request.url}: the answer broke off ({error or type(error).__name__})"
        )
        raise UnreachableError(f"{message}; try again", may_have_acted=True) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the answer"
        raise UnexpectedAnswerError(
            f"{answer.request.url} answers something else than this client reads ({field}: {first['msg']}); check the "
            "address, and install the release of axformer that the service has"
        ) from None


def _refusal(answer: httpx2.Response) -> RefusedError:
    problem = _problem(answer)
    status = answer.status_code
    detail, code = problem.get("detail"), problem.get("code")
    if not isinstance(detail, str) or not isinstance(code, str):
        detail = (
            f"{answer.request.method} {answer.request.url} was answered with {status} {answer.reason_phrase}".strip()
        )
        detail += "; check the address" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "; try again later"
        code = f"http_{status}"
    retry_after = _seconds(answer.headers.get("Retry-After"))
    return refusal_class(status)(detail, status=status, code=code, retry_after=retry_after, problem=problem)


def _problem(answer: httpx2.Response) -> Mapping[str, Any]:
    try:
        content = answer.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _seconds(retry_after: str | None) -> float | None:
    """Seconds of a ``Retry-After``; None if it is missing, or a date, which the service does not send."""
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
