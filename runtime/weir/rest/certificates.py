"""Verifies the job's certificate when the driver starts (spec X1, U3).

The operator and the slots trust a driver by the job's certificate authority alone. With a
certificate of another authority, or an expired one, they could only report that no driver answers.
So a driver first does a TLS handshake with itself, in memory, and refuses to start if that fails.
"""

import ssl
from contextlib import suppress

from weir.errors import JobRejected
from weir.wire.authenticated_sockets import Tls

ROUNDS = 4
"""Enough for every message of a handshake, in any TLS version."""


def check_certificate(tls: Tls) -> None:
    """Refuse a certificate that a client with the job's authority would not accept."""
    try:
        listener = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        listener.load_cert_chain(tls.certificate, tls.key)
        guest = ssl.create_default_context(cafile=tls.authority)
        guest.check_hostname = False
        _handshake(guest, listener)
    except (OSError, ValueError) as problem:
        raise JobRejected(
            f"TLS cannot use the certificate {tls.certificate} with the key {tls.key} and the "
            f"authority {tls.authority}",
            _cause(problem),
            "use a certificate that is valid today, its key, and the certificate of the "
            "authority that signed it",
        ) from problem


def _handshake(guest: ssl.SSLContext, listener: ssl.SSLContext) -> None:
    to_guest, to_listener = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        guest.wrap_bio(to_guest, to_listener),
        listener.wrap_bio(to_listener, to_guest, server_side=True),
    )
    for _ in range(ROUNDS):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()


def _cause(problem: Exception) -> str:
    if isinstance(problem, ssl.SSLCertVerificationError):
        return problem.verify_message
    return (isinstance(problem, OSError) and problem.strerror) or str(problem)
