"""How a driver is spoken to: its token and, with TLS, the authority that its certificate is of.

Both are read from Secrets of the job's namespace, kept in memory for a while and told to nobody but
the driver itself (X4). They are read anew for every driver, which may have been given others than
the one before it: keys that were lost are made again, and an edit can bring certificates.
"""

import base64
import binascii
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from weir_operator.cluster.answers import Api, good, read
from weir_operator.cluster.objects import Opened
from weir_operator.cluster.places import SECRETS, Key
from weir_operator.manifests.job_keys import TOKEN
from weir_operator.manifests.names import keys_name

AUTHORITY = "ca.crt"
KEPT = timedelta(minutes=10)
MISSED = timedelta(seconds=5)

Driver = tuple[object, str | None]
"""Whom a contact is with: an attempt's driver, and the Secret with its certificates."""


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
    """The contacts of all jobs, by the uid of their resource."""

    api: Api
    _known: dict[str, _Known] = field(default_factory=dict)

    async def of(self, job: Opened, tls_secret: str | None, now: datetime) -> Contact | Lacking:
        """How to speak to a job's driver, or what is lacking for that."""
        driver = (_attempt(job), tls_secret)
        known = self._known.get(job.uid)
        if known is not None and known.driver == driver and now < known.until:
            return known.contact
        found = await self._read(job, tls_secret)
        until = now + (KEPT if isinstance(found, Contact) else MISSED)
        self._known[job.uid] = _Known(driver, until, found)
        return found

    def doubt(self, uid: str, now: datetime) -> None:
        """Nobody could speak with the driver so; whoever mends its Secret is soon noticed."""
        known = self._known.get(uid)
        if known is not None:
            self._known[uid] = replace(known, until=min(known.until, now + MISSED))

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)

    async def _read(self, job: Opened, tls_secret: str | None) -> Contact | Lacking:
        namespace, keys = job.key.namespace, keys_name(job.key.name)
        token = await self._entry(Key(namespace, keys), TOKEN)
        if token is None:
            return Lacking(keys, TOKEN)
        if tls_secret is None:
            return Contact(token)
        authority = await self._entry(Key(namespace, tls_secret), AUTHORITY)
        return Lacking(tls_secret, AUTHORITY) if authority is None else Contact(token, authority)

    async def _entry(self, secret: Key, name: str) -> str | None:
        request = read(SECRETS, secret)
        answer = await self.api.call(request)
        if answer.is_missing:
            return None
        given = (good(request, answer).get("data") or {}).get(name)
        try:
            return None if given is None else base64.b64decode(given, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None


def _attempt(job: Opened) -> object:
    """Of the current driver, as the status counts; only told apart here."""
    return (job.status.get("driver") or {}).get("attempt")
