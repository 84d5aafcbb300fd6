"""
Limits of logins: lines ``DOMAIN soft ITEM VALUE`` and ``hard`` in /etc/security/limits.d/90-hwcheck.conf.

Source: limits.conf(5), pam_limits(8): first /etc/security/limits.conf, then limits.d sorted by name; the last line of
one domain counts, and of several domains that fit a user the most special one: the user, then groups, then ``*``, which
leaves root out. Key: ``* memlock``. They count from the next login; services take systemd's limits (mechanism
unit_property). Slurm hands on the limits of the submitting shell unless its configuration leaves MEMLOCK out
(PropagateResourceLimitsExcept).

Refused: a file that sorts after ours and sets the same otherwise; its owner is named. Lines of users and groups are
theirs and left alone.
"""

from __future__ import annotations

import re

from .change import file_change
from .mechanism import Facets, Mechanism, Proposal, mechanism, unsupported
from .owned_file import Owned, OwnedFile
from .place import Place
from .step import Step

FILE = "/etc/security/limits.d/90-hwcheck.conf"
_MAIN = "/etc/security/limits.conf"
_ITEMS = (
    "core", "data", "fsize", "memlock", "nofile", "rss", "stack", "cpu", "nproc", "as", "maxlogins", "maxsyslogins",
    "nonewprivs", "priority", "locks", "sigpending", "msgqueue", "nice", "rtprio",
)  # fmt: skip
_KEY = re.compile(r"(\*|root|[@%]?[A-Za-z_][A-Za-z0-9_.:-]{0,63}) ([a-z]+)")
_VALUE = re.compile(r"unlimited|infinity|-?\d{1,19}")


@mechanism("limits")
class Limits(Mechanism):
    """Limits that PAM sets at login."""

    def files(self, place: Place) -> list[Owned]:
        """Return our file."""
        return [Owned(FILE, OwnedFile(place.bytes_as_text(FILE), key_of))]

    def facets(self, place: Place, step: Step) -> Facets:
        """Read a limit, soft and hard; a login that is there keeps its own."""
        found = _KEY.fullmatch(step.key)
        wanted = spelled(step.value)
        if found is None or found[2] not in _ITEMS or not _VALUE.fullmatch(step.value):
            return unsupported(wanted, f"{step.key} = {step.value!r} is no domain, item and value of limits.conf")
        following, owner = _next_login(place, found[1], found[2])
        refused = ""
        if owner and following != wanted:
            refused = f"{owner} sets {step.key} to {following} after ours; its owner must change it, or leave it out"
        return Facets(wanted, None, following or "not set", None, refused, waits="counts from the next login")

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose our file."""
        owned = OwnedFile(place.bytes_as_text(FILE), key_of)
        for step in steps:
            domain, item = step.key.split()
            value = spelled(step.value)
            owned.put(step.key, f"{domain} soft {item} {value}\n{domain} hard {item} {value}", step.id)
        change = file_change(place, FILE, owned.render(), [step.number for step in steps])
        return Proposal([change] if change is not None else [], [])


def spelled(value: str) -> str:
    """Spell what means no limit in one way."""
    return "unlimited" if value in ("unlimited", "infinity", "-1") else value


def key_of(line: str) -> str:
    """Return domain and item of a line."""
    words = line.split()
    return f"{words[0]} {words[2]}" if len(words) == 4 and words[0][0] != "#" else ""


def _next_login(place: Place, domain: str, item: str) -> tuple[str, str]:
    """Return the limit of the next login ("soft/hard" where they differ), and who sets it after ours; "" for nobody."""
    values = {"soft": "", "hard": ""}
    owner = ""
    folder = FILE.rpartition("/")[0]
    for path in [_MAIN, *sorted(place.expand(folder + "/*.conf"))]:
        for line in (place.text(path) or "").splitlines():
            words = line.split("#")[0].split()
            if len(words) != 4 or words[0] != domain or words[2] != item:
                continue
            kinds = ("soft", "hard") if words[1] == "-" else (words[1],)
            values.update({kind: spelled(words[3]) for kind in kinds if kind in values})
            owner = path if path.startswith(folder) and path > FILE else ""
    soft, hard = values["soft"], values["hard"]
    return (soft if soft == hard else f"{soft or 'not set'}/{hard or 'not set'}"), owner
