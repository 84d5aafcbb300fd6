"""
Names, addresses and serial numbers out of evidence, so that a bundle can be given away. Pure.

The same name becomes the same pseudonym everywhere in a bundle, and in every bundle made with the same key; what it
was cannot be told without the key. Pseudonyms have the form of what they stand for, so that parsers read them alike,
and keep what a verdict rests on: whether two addresses are of one network, the vendor in a MAC or GUID, whether two
GPUs are one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_UUID = re.compile(
    r"(?<![0-9a-fA-F])(?<![0-9a-fA-F]-)[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![0-9a-fA-F-])"
)
_IPV4 = re.compile(rf"(?<![\w.-])(?:{_OCTET}\.){{3}}{_OCTET}(?![\w-]|\.\d)")
_VERSION = re.compile(r"(?i)(?:version|firmware|fw|rev(?:ision)?|release|bios|\bv)[\"'\s:=(v]*$")
_IPV6 = re.compile(
    r"(?<![\w:.])(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
    r"|(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6}|(?:[0-9a-fA-F]{1,4}:){2,7}:)(?![\w:])"
)
_BYTES = re.compile(
    r"(?<![\w:-])[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}(?:(?::[0-9a-fA-F]{2}){2}|(?::[0-9a-fA-F]{2}){14})?(?![\w:-])"
)
_DASHED = re.compile(r"(?<![\w-])[0-9a-fA-F]{2}(?:-[0-9a-fA-F]{2}){7}(?![\w-])")
"""A PCI device serial number as lspci writes it: the GUID again."""
_GUID = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}(?![\w:])|(?<=0x)[0-9a-fA-F]{16}(?![0-9a-fA-F])")
_SERIAL = re.compile(
    r"(?i)(?:serial(?:[ _-]?(?:number|num|no))?|\bs/?n)[\"']?(?:\s{0,40}[:=]|>|\s{0,4}\()\s{0,4}[\"'=]?\s{0,4}"
    r"([A-Za-z0-9][A-Za-z0-9-]{4,40})(?![\w-])"
)
_HOME = re.compile(r"/home/([A-Za-z_][\w.-]{0,31})")
_DOMAIN = re.compile(
    r"(?i)(?<![\w.@/-])(?:[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?\.){1,6}"
    r"(?:com|net|org|edu|gov|mil|local|internal|intranet|lan|corp|cloud|cluster|ai|io|de|uk|fr|ch|nl|eu|jp|cn)(?![\w-]|\.\w)"
)
_PUBLIC = (
    "nvidia.com", "mellanox.com", "kernel.org", "ntp.org", "debian.org", "ubuntu.com", "redhat.com", "example.com",
)  # fmt: skip
_WORDS = frozenset({
    "localhost", "none", "unknown", "null", "n/a", "default", "root", "gpu", "node", "host", "linux", "ubuntu",
    "nvidia",
})  # fmt: skip
"""Words that stand everywhere in evidence: as names of hosts or users they cannot be taken out of it."""

_HOST_PLACE = (
    r"(?m)(^host=|hostname\"?\s{0,9}[=:]\s{0,9}\"?|@|^(?=(?:NAME)$)"
    r"|^(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT\S{5,30}) )"
    r"(NAME)(?=\s|\"|$)"
)
"""Where a host's name stands: hostname files and settings, after the time of a log line, alone in a line."""


class Redactor:
    """
    Pseudonyms by a key.

    Args:
        key: secret; the same key gives the same pseudonyms.
        keep_serials: leave serial numbers, which an RMA needs.
        hosts: names of the nodes.
        users: names of people.
    """

    def __init__(
        self, key: bytes, *, keep_serials: bool = False, hosts: Iterable[str] = (), users: Iterable[str] = ()
    ) -> None:
        self._key = hashlib.blake2b(key, digest_size=32).digest()
        self._keep_serials = keep_serials
        self._learned: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._words: dict[str, str] = {}
        self._place: re.Pattern[str] | None = None
        for name in hosts:
            self.learn_host(name)
        for name in users:
            self._learn(name, f"user-{self._hash('user', name)[:6]}")

    # ---------------------------------------------------------------------------------------------------------- names

    def host(self, name: str) -> str:
        """Return the pseudonym of a host."""
        return f"node-{self._hash('host', name.lower().partition('.')[0])[:8]}" if name else ""

    def learn_host(self, name: str) -> None:
        """Take a host's name out of every text, with and without its domain."""
        if not name or _IPV4.fullmatch(name) or ":" in name:
            return
        for form in {name, name.partition(".")[0]}:
            if any(not char.isalpha() for char in form):
                self._learn(form, self.host(name))
            else:  # "vm" or "login" is also a word of its own: only where a host's name must stand
                self._words[form] = self.host(name)
                names = "|".join(map(re.escape, self._words))
                self._place = re.compile(_HOST_PLACE.replace("NAME", names))

    def learn(self, text: str) -> None:
        """Look through a text for names that must go wherever they stand: serial numbers, people's homes."""
        if not self._keep_serials:
            for match in _SERIAL.finditer(text):
                if any(map(str.isdigit, match[1])) and match[1].strip("0"):
                    self._learn(match[1], self._alike("serial", match[1]))
        for match in _HOME.finditer(text):
            self._learn(match[1], f"user-{self._hash('user', match[1])[:6]}")

    def _learn(self, name: str, instead: str) -> None:
        if len(name) >= 2 and name.lower() not in _WORDS and self._learned.setdefault(name, instead) == instead:
            self._pattern = None

    # ---------------------------------------------------------------------------------------------------------- texts

    def text(self, text: str) -> str:
        """Return a text with pseudonyms; line for line, so that line numbers stay."""
        if self._learned:
            if self._pattern is None:
                names = sorted(self._learned, key=len, reverse=True)
                self._pattern = re.compile(
                    r"(?<![A-Za-z0-9])(?:" + "|".join(map(re.escape, names)) + r")(?![A-Za-z0-9])"
                )
            text = self._pattern.sub(lambda match: self._learned[match[0]], text)
        if self._place is not None:
            text = self._place.sub(lambda match: match[1] + self._words[match[2]], text)
        text = _UUID.sub(self._uuid, text)
        text = _BYTES.sub(self._bytes, text)
        text = _DASHED.sub(
            lambda match: _cased(_pairs(self._eui(match[0].lower().replace("-", "")), "-"), match[0]), text
        )
        text = _IPV6.sub(self._ipv6, text)
        text = _GUID.sub(self._guid, text)
        text = _IPV4.sub(self._ipv4, text)
        return _DOMAIN.sub(self._domain, text)

    def data(self, data: bytes) -> bytes:
        """Return the bytes of a text with pseudonyms; bytes that are no text stay as they are."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def _uuid(self, match: re.Match[str]) -> str:
        text = match[0]
        digits = text.replace("-", "").lower()
        # all zero or all f: redacted or unset, and said so by tools; the name of EFI's own variables is no secret
        if len(set(digits)) == 1 or digits.startswith("8be4df6193ca11d2"):
            return text
        new = self._hash("uuid", digits)[:32]
        return _cased(f"{new[:8]}-{new[8:12]}-{new[12:16]}-{new[16:20]}-{new[20:]}", text)

    def _bytes(self, match: re.Match[str]) -> str:
        """Replace a MAC (6 bytes), an EUI-64 (8) or an IPoIB address (20): the vendor stays."""
        parts = match[0].lower().split(":")
        if len(set(parts)) == 1:
            return match[0]
        if len(parts) == 20:
            return _cased(":".join(parts[:12]) + ":" + _pairs(self._eui("".join(parts[12:]))), match[0])
        if len(parts) == 8:
            return _cased(_pairs(self._eui("".join(parts))), match[0])
        return _cased(":".join(parts[:3]) + ":" + _pairs(self._hash("mac", "".join(parts))[:6]), match[0])

    def _eui(self, digits: str) -> str:
        """Replace a GUID of 16 digits: the vendor (6) stays."""
        return digits if not digits.strip("0f") else digits[:6] + self._hash("guid", digits)[:10]

    def _guid(self, match: re.Match[str]) -> str:
        text = match[0]
        if ":" in text:
            new = self._eui(text.replace(":", "").lower())
            return _cased(":".join(new[at : at + 4] for at in range(0, 16, 4)), text)
        line = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
        return _cased(self._eui(text.lower()), text) if "guid" in line.lower() else text  # else a register or a mask

    def _ipv6(self, match: re.Match[str]) -> str:
        text = match[0]
        groups = _groups(text)
        if groups is None or not any(groups[:-1]):  # :: and ::1
            return text
        if not any(groups[:5]) and groups[5] == 0xFFFF:  # an IPv4 address in a GID
            old = (groups[6] << 16) | groups[7]
            new = self._ipv4_number(old)
            return _spell([*groups[:6], new >> 16, new & 0xFFFF], text)
        high = groups[:4]
        if high[0] >> 6 != 0x3FA and any(high):  # not link-local: the network goes too
            digits = self._hash("net6", "".join(f"{group:04x}" for group in high))
            high = [high[0], *(int(digits[at : at + 4], 16) for at in (0, 4, 8))]
        low = self._eui("".join(f"{group:04x}" for group in groups[4:]))
        return _spell([*high, *(int(low[at : at + 4], 16) for at in range(0, 16, 4))], text)

    def _ipv4(self, match: re.Match[str]) -> str:
        before = match.string[max(0, match.start() - 24) : match.start()]
        if _VERSION.search(before):
            return match[0]  # a version of four numbers
        parts = [int(part) for part in match[0].split(".")]
        if parts[0] in (0, 127, 255) or parts[0] >= 224 or match[0].startswith("169.254."):
            return match[0]
        new = self._ipv4_number(int.from_bytes(bytes(parts), "big"))
        return ".".join(str(byte) for byte in new.to_bytes(4, "big"))

    def _ipv4_number(self, old: int) -> int:
        """Map an address so that two of one network stay of one network, however long its prefix is; to 10.0.0.0/8."""
        new = 10 << 24
        for bit in range(23, -1, -1):
            flip = int(self._hash("net4", f"{bit}/{old >> (bit + 1)}")[0], 16) & 1
            new |= (((old >> bit) & 1) ^ flip) << bit
        return new

    def _domain(self, match: re.Match[str]) -> str:
        name = match[0].lower()
        if name.endswith(_PUBLIC):
            return match[0]
        return f"host-{self._hash('domain', name)[:8]}.example"

    # --------------------------------------------------------------------------------------------------------- hashes

    def _hash(self, kind: str, text: str) -> str:
        return hashlib.blake2b(
            text.encode("utf-8", "surrogateescape"), key=self._key, person=kind.encode(), digest_size=32
        ).hexdigest()

    def _alike(self, kind: str, text: str) -> str:
        """Replace digits by digits and letters by letters."""
        stream = hashlib.blake2b(text.encode(), key=self._key, person=kind.encode(), digest_size=64).digest()
        return "".join(_like(char, stream[index % 64]) for index, char in enumerate(text))


def _like(char: str, byte: int) -> str:
    for first, size in (("0", 10), ("a", 26), ("A", 26)):
        if ord(first) <= ord(char) < ord(first) + size:
            return chr(ord(first) + byte % size)
    return char


def _cased(new: str, old: str) -> str:
    return new.upper() if old != old.lower() else new


def _pairs(digits: str, between: str = ":") -> str:
    return between.join(digits[at : at + 2] for at in range(0, len(digits), 2))


def _groups(text: str) -> list[int] | None:
    """Return the eight groups of an IPv6 address; None for what is none."""
    head, gap, tail = text.partition("::")
    first = head.split(":") if head else []
    last = tail.split(":") if tail else []
    middle = 8 - len(first) - len(last)
    if (gap and middle < 1) or (not gap and middle):
        return None
    return [int(part, 16) for part in (*first, *["0"] * middle, *last)]


def _spell(groups: list[int], like: str) -> str:
    """Write an address the way the old one was written: all eight groups in full, or short."""
    if "::" not in like:
        width = 4 if all(len(part) == 4 for part in like.split(":")) else 0
        return _cased(":".join(f"{group:0{width}x}" if width else f"{group:x}" for group in groups), like)
    runs = re.sub(r"(?:^|(?<=:))0(?::0)+(?:$|(?=:))", ":", ":".join(f"{group:x}" for group in groups), count=1)
    return _cased(runs.replace(":::", "::"), like)
