"""
What stands behind the tools of a lab node: it acts on the node's own files, as systemd, the loader or a driver would.

Runs by ``python3 -ISB FOLDER TOOL ARGUMENT...`` with nothing but Python: on the node in host form, beside the lab in
tree form. What it knows beside the node's files lies in the node's ``live`` folder, which a boot makes anew. Only
``os`` is used for files: importing pathlib costs more than most acts.
"""
