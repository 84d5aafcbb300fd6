"""
The controller's half of hwcheck_warmup: who takes part, whether all can at once, and where the results are kept.

Peers that this play does not reach would only be waited for, so they are left out on every node alike. All peers have
to be at it at the same time: with fewer forks than peers some would wait for others that have not been started.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,252}")


class ActionModule(ActionBase):
    """Runs the module once."""

    _requires_connection = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Carry out the task."""
        result = super().run(tmp, task_vars)
        del tmp
        host = str(task_vars["inventory_hostname"])
        arguments = dict(self._task.args)
        folder = arguments.pop("results_dir", None)
        if folder and not _HOST.fullmatch(host):
            raise AnsibleActionFail(f"no name for a file: {host!r}")
        asked = arguments.get("peers") or []
        here = set(map(str, task_vars.get("ansible_play_batch") or []))
        peers = [one for one in asked if not isinstance(one, dict) or str(one.get("name")) in here]
        left_out = sorted(str(one.get("name")) for one in asked if one not in peers)
        forks = int(task_vars.get("ansible_forks") or 0)
        if forks and len(peers) > forks and not self._task.check_mode:
            raise AnsibleActionFail(f"{len(peers)} peers have to run at once, and there are {forks} forks (--forks)")
        told = self._execute_module(
            module_name="hwcheck_warmup", module_args={**arguments, "peers": peers}, task_vars=task_vars
        )
        told["left_out"] = left_out
        if folder and not self._task.check_mode:
            _keep(Path(folder) / f"{host}.json", host, told)
        return {**result, **told}


def _keep(file: Path, host: str, told: dict[str, Any]) -> None:
    kept = {"node": host, **{key: told.get(key) for key in ("pairs", "measurements", "missing", "left_out")}}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        begun = file.with_name(f".{file.name}.begun")
        begun.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        begun.replace(file)
    except OSError as error:
        raise AnsibleActionFail(f"the results cannot be kept: {error}") from error
