"""How a driver is spoken to: its token and, with TLS, the authority that its certificate is of.

Both are read from Secrets of the job's namespace, kept in memory for a while and told to nobody but
the driver itself (spec X4). They are read anew for every driver, which may have been given others
than the one before it: keys that were lost are made again, and an edit can bring certificates.
"""

import base64
import binascii
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from weir_operator.cluster.api_paths import SECRETS, Key
from weir_operator.cluster.api_requests import Api, good, read
from weir_operator.cluster.resource_object import Opened
from weir_operator.manifests.job_secret import TOKEN
from weir_operator.manifests.object_names import keys_name

AUTHORITY = "ca.crt"
LONGEST = {AUTHORITY: 64 * 1_024, TOKEN: 1_024}
"""Bytes of each entry. It is kept for every driver that is spoken to; a Secret may hold 1 MiB."""
KEPT = timedelta(minutes=10)
MISSED = timedelta(seconds=5)

Driver = tuple[str, object, str | None]
"""Whom a contact is with: a job by its uid, its attempt, and the Secret with its certificates."""


@dataclass(frozen=True, slots=True)
class Contact:
    """What it takes to speak to the drivers of a job."""

    token: str = field(repr=False)
    authority: str | None = None
    """Certificate of the authority, if the drivers speak TLS."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """A Secret that does not hold what it takes, or that is not there."""

    secret: str
    entry: str
    is_too_long: bool = False

    @property
    def why(self) -> str:
        if not self.is_too_long:
            return f"the Secret {self.secret} holds no {self.entry}"
        most = LONGEST[self.entry]
        return f"the Secret {self.secret} holds a {self.entry} of more than {most} bytes"

    @property
    def is_authority(self) -> bool:
        return self.entry == AUTHORITY


@dataclass(frozen=True, slots=True)
class _Known:
    """What was read for a driver, and until when that holds."""

    driver: Driver
    until: datetime
    contact: Contact | Lacking


@dataclass(slots=True)
class Contacts:
    """The contacts of all jobs."""

    api: Api
    _known: dict[Key, _Known] = field(default_factory=dict)

    async def of(self, job: Opened, tls_secret: str | None, now: datetime) -> Contact | Lacking:
        """How to speak to a job's driver, or what is lacking for that."""
        driver = (job.uid, _attempt(job), tls_secret)
        known = self._known.get(job.key)
        if known is not None and known.driver == driver and now < known.until:
            return known.contact
        found = await self._read(job, tls_secret)
        until = now + (KEPT if isinstance(found, Contact) else MISSED)
        self._known[job.key] = _Known(driver, until, found)
        return found

    def doubt(self, job: Key, now: datetime) -> None:
        """Nobody could speak with the driver so; whoever mends its Secret is soon noticed."""
        known = self._known.get(job)
        if known is not None:
            self._known[job] = replace(known, until=min(known.until, now + MISSED))

    def forget(self, job: Key) -> None:
        self._known.pop(job, None)

    async def _read(self, job: Opened, tls_secret: str | None) -> Contact | Lacking:
        namespace = job.key.namespace
        token = await self._entry(Key(namespace, keys_name(job.key.name)), TOKEN)
        if isinstance(token, Lacking):
            return token
        if tls_secret is None:
            return Contact(token)
        authority = await self._entry(Key(namespace, tls_secret), AUTHORITY)
        return authority if isinstance(authority, Lacking) else Contact(token, authority)

    async def _entry(self, secret: Key, name: str) -> str | Lacking:
        request = read(SECRETS, secret)
        answer = await self.api.call(request)
        if answer.is_missing:
            return Lacking(secret.name, name)
        given = (good(request, answer).get("data") or {}).get(name)
        try:
            entry = None if given is None else base64.b64decode(given, validate=True)
            if entry is not None and len(entry) > LONGEST[name]:
                return Lacking(secret.name, name, is_too_long=True)
            return Lacking(secret.name, name) if entry is None else entry.decode()
        except (binascii.Error, UnicodeDecodeError):
            return Lacking(secret.name, name)


def _attempt(job: Opened) -> object:
    """Of the current driver, as the status counts; only told apart here."""
    return (job.status.get("driver") or {}).get("attempt")
