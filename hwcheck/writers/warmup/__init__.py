"""
Warming neighbours and paths between peers before they serve; runs on all of them at once, and leaves nothing behind.

The nodes meet in the rounds of a tournament (:mod:`.tournament`), agree over a connection of their own what both can
run (:mod:`.meeting`), run it (:mod:`.programs`) and keep how the first message compares with the rest
(:mod:`.samples`). A queue pair belongs to its process: what a serving process will open itself stays cold.
"""
