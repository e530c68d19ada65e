"""Raises the limits of this process so that it can hold a thousand connections to drivers.

Each watched driver holds a connection. A container may start with a low soft limit of open files;
and asyncio allocates a quarter of a megabyte for every TLS connection, although a report has only a
few kilobytes.
"""

import resource
from asyncio import sslproto

ENCRYPTED_BYTES = 32 * 1_024
"""Read at once from a connection; a TLS record has half of that."""


def raise_connection_limits() -> None:
    """Applies to all connections that this process opens from now on."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    sslproto.SSLProtocol.max_size = ENCRYPTED_BYTES
