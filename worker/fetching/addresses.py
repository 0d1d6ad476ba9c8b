"""Keep fetching out of private networks: an untrusted URL must not reach what only this machine can reach.

The name is resolved once, every address is checked, and the connection goes to a checked address. A second look-up,
which could give another answer, never happens.
"""

import ipaddress
import socket
from typing import Any

import httpx2

from store.addresses import is_public
from worker.fetching.errors import ReferenceForbidden, SourceUnavailable
from worker.fetching.policy import FetchPolicy

_DEFAULT_PORTS = {"https": 443, "http": 80}


def resolve(host: str, port: int, policy: FetchPolicy) -> list[str]:
    """Addresses of a host that may be connected to, as text.

    Raises:
        ReferenceForbidden: one of them is not public, and the operator has not allowed the host.
        SourceUnavailable: the name cannot be resolved.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceUnavailable(f"host '{host}' cannot be resolved ({error}); check its name") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if host.lower() not in policy.private_hosts:
        for text in addresses:
            if not is_public(ipaddress.ip_address(text.partition("%")[0])):
                raise ReferenceForbidden(
                    f"host '{host}' is at {text}, which is not a public address; the operator can allow the host"
                )
    return addresses


class PinnedTransport(httpx2.HTTPTransport):
    """Sends each request, redirected ones too, to a checked address while certificate and ``Host`` stay the name's."""

    def __init__(self, policy: FetchPolicy, **options: Any) -> None:
        super().__init__(trust_env=False, limits=httpx2.Limits(max_keepalive_connections=0), **options)
        self._policy = policy

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Check the address of the request, then send it there."""
        url = request.url
        if url.userinfo:
            raise ReferenceForbidden(f"the address at '{url.host}' holds a user name or password; leave them out")
        if url.scheme != "https" and not (url.scheme == "http" and self._policy.plain_http):
            raise ReferenceForbidden(
                f"'{url.scheme}://{url.host}' is not read over {url.scheme}; use an https:// address"
            )
        port = _DEFAULT_PORTS[url.scheme] if url.port is None else url.port
        addresses = resolve(url.host, port, self._policy)
        if not self._policy.allows_port(url.host, port):
            raise ReferenceForbidden(
                f"port {port} of host '{url.host}' is not read; use an address on port 443, or ask the operator to allow it"
            )
        for address in addresses[:-1]:
            try:
                return self._send(request, address)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return self._send(request, addresses[-1])

    def _send(self, request: httpx2.Request, address: str) -> httpx2.Response:
        pinned = httpx2.Request(
            method=request.method,
            url=request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        return super().handle_request(pinned)
