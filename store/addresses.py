"""Which addresses belong to the public internet: what comes from outside must not reach what only this machine can."""

import ipaddress
import socket

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Whether an address, and any address wrapped in it, belongs to the public internet."""
    if not address.is_global or address.is_multicast:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        wrapped = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            wrapped.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        return all(is_public(inner) for inner in wrapped if inner is not None)
    return True


def numeric_addresses(host: str) -> list[Address]:
    """The addresses that a host stands for without any look-up, in all the ways that a system reads, such as ``127.1``.

    None where it is a name.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return []
    return [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
