"""Which addresses are public: untrusted URLs must not reach what only this machine can reach.

The standard library's tables grow with its versions; ranges that the oldest supported version lacks are listed here.
"""

import ipaddress
import socket

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All IPv6 addresses allocated to the public internet."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_RESERVED = (
    ipaddress.ip_network("192.0.0.0/24"),  # for protocols; one cloud hands out its secrets at 192.0.0.192
    ipaddress.ip_network("192.88.99.0/24"),  # relays from 6to4, given up
    ipaddress.ip_network(
        "168.63.129.16/32"
    ),  # the host of virtual machines of one cloud, which hands out their secrets
    ipaddress.ip_network("3fff::/20"),  # documentation
)
"""Addresses that look public but are not."""


def is_public(address: Address) -> bool:
    """Whether an address, and any address wrapped in it, belongs to the public internet."""
    if isinstance(address, ipaddress.IPv6Address):
        return _is_public_v6(address)
    return address.is_global and not address.is_multicast and not _is_reserved(address)


def _is_public_v6(address: ipaddress.IPv6Address) -> bool:
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address in _NAT64:
        return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    if address not in _UNICAST or not address.is_global or _is_reserved(address):
        return False
    wrapped = (address.sixtofour, *(address.teredo or ()))
    return all(is_public(inner) for inner in wrapped if inner is not None)


def _is_reserved(address: Address) -> bool:
    return any(address in network for network in _RESERVED)


def numeric_addresses(host: str) -> list[Address]:
    """The addresses that a host stands for without any look-up, in all the ways that a system reads, such as ``127.1``.

    None where it is a name.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return []
    return [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
