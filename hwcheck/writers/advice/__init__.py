"""
Reads what hwcheck does not change by itself, and says exactly what to do; writes nothing, and downloads nothing.

A topic returns ``found`` (what the node says), ``unknown`` (what could not be read, and why), ``differs`` (something is
to be done; None where that is not known) and ``advice`` (sentences, in the order in which they are carried out).
"""
