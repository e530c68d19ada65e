"""Makes certificates that are thrown away with the test's folder."""

import subprocess
from pathlib import Path

from weir.wire.authenticated_sockets import Tls

USAGE = "keyUsage=critical,digitalSignature,keyCertSign"
NO_AUTHORITY = "basicConstraints=critical,CA:FALSE"


def a_certificate(folder: Path, name: str, signed_by: Tls | None = None) -> Tls:
    """One that signs itself, and can sign others; or one that another has signed."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    signer = () if signed_by is None else ("-CA", signed_by.certificate, "-CAkey", signed_by.key)
    subprocess.run(  # noqa: S603
        [
            *("openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-addext", USAGE if signed_by is None else NO_AUTHORITY),
            *("-out", str(certificate), "-keyout", str(key)),
            *map(str, signer),
        ],
        check=True,
        capture_output=True,
    )
    return Tls(certificate, key, certificate if signed_by is None else signed_by.certificate)
