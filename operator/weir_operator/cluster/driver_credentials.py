"""The credentials for a driver's API: its token and, with TLS, the CA of its certificate.

Both are read from Secrets in the job's namespace, cached for a limited time and sent to the driver
only (spec X4). They are read again for every driver, because they may have changed: lost keys are
generated again, and an edit can introduce certificates.
"""

import base64
import binascii
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from weir_operator.cluster.api_paths import SECRETS, NamespacedName
from weir_operator.cluster.api_requests import ApiServer, get_request, successful_body
from weir_operator.cluster.resource_object import ResourceObject
from weir_operator.manifests.job_secret import TOKEN
from weir_operator.manifests.object_names import keys_name

AUTHORITY = "ca.crt"
MAX_BYTES = {AUTHORITY: 64 * 1_024, TOKEN: 1_024}
"""Limit for each entry. Entries are cached for every driver, and a Secret may hold 1 MiB."""
CACHE_TTL = timedelta(minutes=10)
MISSING_TTL = timedelta(seconds=5)

Driver = tuple[str, object, str | None]
"""What a cache entry belongs to: the job's uid, the attempt, and the Secret with the certificates.
"""


@dataclass(frozen=True, slots=True)
class DriverCredentials:
    """The credentials for the drivers of a job."""

    token: str = field(repr=False)
    authority: str | None = None
    """CA certificate, if the drivers use TLS."""


@dataclass(frozen=True, slots=True)
class MissingCredential:
    """An entry that a Secret does not contain, or a Secret that does not exist."""

    secret: str
    entry: str
    is_too_long: bool = False

    @property
    def why(self) -> str:
        if not self.is_too_long:
            return f"the Secret {self.secret} holds no {self.entry}"
        most = MAX_BYTES[self.entry]
        return f"the Secret {self.secret} holds a {self.entry} of more than {most} bytes"

    @property
    def is_authority(self) -> bool:
        return self.entry == AUTHORITY


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    """What was read for a driver, and its expiry."""

    driver: Driver
    until: datetime
    credentials: DriverCredentials | MissingCredential


@dataclass(slots=True)
class CredentialsCache:
    """The credentials for the drivers of all jobs."""

    api: ApiServer
    _known: dict[NamespacedName, _CacheEntry] = field(default_factory=dict)

    async def of(
        self, job: ResourceObject, tls_secret: str | None, now: datetime
    ) -> DriverCredentials | MissingCredential:
        """The credentials for a job's driver, or what is missing."""
        driver = (job.uid, _attempt(job), tls_secret)
        known = self._known.get(job.key)
        if known is not None and known.driver == driver and now < known.until:
            return known.credentials
        found = await self._read(job, tls_secret)
        until = now + (CACHE_TTL if isinstance(found, DriverCredentials) else MISSING_TTL)
        self._known[job.key] = _CacheEntry(driver, until, found)
        return found

    def expire_soon(self, job: NamespacedName, now: datetime) -> None:
        """The driver was not trusted; read the Secrets again soon, in case they are corrected."""
        known = self._known.get(job)
        if known is not None:
            self._known[job] = replace(known, until=min(known.until, now + MISSING_TTL))

    def forget(self, job: NamespacedName) -> None:
        self._known.pop(job, None)

    async def _read(
        self, job: ResourceObject, tls_secret: str | None
    ) -> DriverCredentials | MissingCredential:
        namespace = job.key.namespace
        token = await self._entry(NamespacedName(namespace, keys_name(job.key.name)), TOKEN)
        if isinstance(token, MissingCredential):
            return token
        if tls_secret is None:
            return DriverCredentials(token)
        authority = await self._entry(NamespacedName(namespace, tls_secret), AUTHORITY)
        return (
            authority
            if isinstance(authority, MissingCredential)
            else DriverCredentials(token, authority)
        )

    async def _entry(self, secret: NamespacedName, name: str) -> str | MissingCredential:
        request = get_request(SECRETS, secret)
        answer = await self.api.call(request)
        if answer.is_not_found:
            return MissingCredential(secret.name, name)
        given = (successful_body(request, answer).get("data") or {}).get(name)
        try:
            entry = None if given is None else base64.b64decode(given, validate=True)
            if entry is not None and len(entry) > MAX_BYTES[name]:
                return MissingCredential(secret.name, name, is_too_long=True)
            return MissingCredential(secret.name, name) if entry is None else entry.decode()
        except (binascii.Error, UnicodeDecodeError):
            return MissingCredential(secret.name, name)


def _attempt(job: ResourceObject) -> object:
    """The attempt of the current driver, from the status; only compared here."""
    return (job.status.get("driver") or {}).get("attempt")
