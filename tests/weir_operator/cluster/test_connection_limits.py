"""An operator has room for as many connections as it has drivers."""

import resource
import subprocess
import sys

CHECK = """
import resource, ssl
from asyncio import sslproto
from weir_operator.cluster.connection_limits import raise_connection_limits
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
raise_connection_limits()
print(*resource.getrlimit(resource.RLIMIT_NOFILE), sslproto.SSLProtocol.max_size)
"""


def test_as_many_files_may_be_open_as_the_container_is_allowed():
    """K9: a thousand drivers are listened to, however few files a process begins with."""
    found = subprocess.run(
        [sys.executable, "-c", CHECK], check=True, capture_output=True, text=True
    ).stdout

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files, allowed, encrypted = map(int, found.split())
    assert (files, allowed) == (most, most)
    assert encrypted < 256 * 1_024
