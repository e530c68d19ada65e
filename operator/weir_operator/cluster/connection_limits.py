"""Makes room for a thousand connections in one small process.

Each driver that is listened to holds a connection. A container may begin with few open files
although it is allowed many; and asyncio keeps a quarter of a megabyte for every connection that is
encrypted, where all that a driver ever says is a few kilobytes.
"""

import resource
from asyncio import sslproto

ENCRYPTED_BYTES = 32 * 1_024
"""Read at once of a connection; one record of TLS is half of that."""


def make_room() -> None:
    """For all connections that this process opens from now on."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    sslproto.SSLProtocol.max_size = ENCRYPTED_BYTES
