"""
What changes a node, and can undo it. Runs on the node, inside one Ansible module call; Python 3.9, standard library.

One mechanism for each way a value lives on a node (a kernel parameter, a unit's drop-in, a GPU attribute ...). A
mechanism writes nothing itself: it reads the five facets of a step and proposes *changes*, of a few kinds that are
written, read back and undone in one place (:mod:`.change`). So a setting of a known mechanism needs no code.

Order of a run on one node (:mod:`.stages`): lease → idle? → propose → journal, with the bytes that were there → (the
controller keeps a copy) → files → commands that make them read → restarts → running values → read everything back.
Killed anywhere, each change is as it was, or as the journal says.

Imports nothing else of hwcheck: Ansible packs this folder alone.
"""
