"""
Profiles: what a platform's checks demand, as YAML layers, base → platform → site.

Maps merge, lists replace, ``null`` deletes. Every wanted value carries ``why`` and ``source``, or the layer does not
load. :func:`load_profile` gives the merged profile; :func:`identify` says which platform a snapshot is of.
"""

from hwcheck.profiles.identify import Identity, identify
from hwcheck.profiles.layers import Entry, Profile, ProfileSet

__all__ = ["Entry", "Identity", "Profile", "ProfileSet", "identify"]
