"""Tries the job's certificate before anybody depends on it (spec X1, U3).

The operator and the slots believe a driver by the job's authority alone. With a certificate of
another one, or one that is past its day, they would find nobody there and could say no more than
that. So a driver greets itself first, in memory, and where that fails it does not start at all.
"""

import ssl
from contextlib import suppress

from weir.errors import JobRejected
from weir.wire.authenticated_sockets import Tls

ROUNDS = 4
"""Enough for all that is said in a handshake, whatever the version."""


def check_certificate(tls: Tls) -> None:
    """Refuse a certificate that nobody who trusts the job's authority would believe."""
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
