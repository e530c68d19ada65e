"""Free ports for a server that is started by its command line and cannot choose one itself."""

import socket
from itertools import islice
from random import SystemRandom

LOOPBACK = "127.0.0.1"
SERVER_PORTS = range(16_000, 32_000)
"""Below net.ipv4.ip_local_port_range, which begins at 32768.

A free port of that range could become the client side of another connection on this machine before
the server listens on it.
"""


def free_server_ports(count: int) -> list[int]:
    drawn = SystemRandom().sample(SERVER_PORTS, len(SERVER_PORTS))
    return list(islice(filter(_is_free, drawn), count))


def _is_free(port: int) -> bool:
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True
