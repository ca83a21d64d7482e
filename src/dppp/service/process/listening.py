"""Addresses to listen on, taken before anything else begins: one that is in use is bad input.

Used by everything that serves: gateway, monitoring, the demo's page.
"""

import socket

from dppp.errors import InputError
from dppp.service.process.config import split_address


def listen(address: str) -> socket.socket:
    """A socket that listens on host:port; port 0 takes a free one."""
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(
            f"cannot listen on {address}: {error.strerror or error}",
            hint="choose another address or port",
        ) from error
