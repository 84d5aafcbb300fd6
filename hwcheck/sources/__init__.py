"""
The node program: reads every source, interprets nothing, prints one framed stream of evidence.

Runs on nodes with Python 3.9 or newer and nothing else, sent over stdin and gone afterwards. Imports nothing of hwcheck
outside of this package, and little of the standard library: start-up is most of its cost. A source says *what* to read
(:class:`hwcheck.sources.source.Source`); what it means is the parsers' business, by the same format kinds that posted
files have. Reading changes nothing: no directory is made in configfs, no cache is left, no attribute is written.
"""
