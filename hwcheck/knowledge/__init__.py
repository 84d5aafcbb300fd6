"""The Xid, SXid and NVLink5 catalogues: package data with typed access. See :mod:`hwcheck.knowledge.catalogue`."""

from hwcheck.knowledge.catalogue import NVLink5Cause, SXid, Xid, nvlink5_causes, sxid, sxids, xid, xids

__all__ = ["NVLink5Cause", "SXid", "Xid", "nvlink5_causes", "sxid", "sxids", "xid", "xids"]
