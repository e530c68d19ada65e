"""Makes certificates that sign themselves and are thrown away with the test's folder."""

import subprocess
from pathlib import Path

from weir.wire.links import Tls


def a_certificate(folder: Path, name: str) -> Tls:
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(  # noqa: S603
        [
            *("openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-out", str(certificate), "-keyout", str(key)),
        ],
        check=True,
        capture_output=True,
    )
    return Tls(certificate, key, authority=certificate)
