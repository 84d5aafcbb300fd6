"""Who meets whom, when: any two peers once, each in one meeting at a time, in one round fewer than there are peers."""

from __future__ import annotations

from typing import NamedTuple


class Meeting(NamedTuple):
    """One meeting of a peer: with whom (None: it rests), and whether the peer is the server of it."""

    partner: str | None
    serves: bool


def meetings(peers: list[str], me: str) -> list[Meeting]:
    """
    Return the meetings of one peer, a round each.

    All peers come to the same rounds from the same list: the first stays, the others move around it by one place a
    round. With an odd number one rests in each round.
    """
    ring = [*peers, ""] if len(peers) % 2 else list(peers)
    last = len(ring) - 1
    found = []
    for number in range(last):
        turned = [ring[0], *(ring[1 + (place + number) % last] for place in range(last))]
        here = turned.index(me)
        partner = turned[last - here]
        serves = here < last - here if number % 2 else here > last - here
        found.append(Meeting(partner or None, serves and bool(partner)))
    return found
