"""
The controller's half of hwcheck_apply: prepare on the node, keep its journal here, then commit on the node.

Nothing is written to a node before its journal lies on the controller's disk. Where the play belongs to ``hwcheck
apply`` (it has a I(session)), nothing is written either once that process has ended: its lock is free then.

Settings come from the task, or from ``steps/NODE.json`` in I(journal_dir), which no template engine ever reads: values
of a node reach the module as they are.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import re
import secrets
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,252}")
_MODULE = "hwcheck_apply"


class ActionModule(ActionBase):
    """Runs the module twice, with the journal kept in between."""

    _requires_connection = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Carry out the task."""
        result = super().run(tmp, task_vars)
        del tmp
        self._vars = task_vars
        told = self._read_arguments(str(task_vars["inventory_hostname"]))
        stage = told["stage"]
        if stage != "apply":
            if self._task.check_mode:
                return {**result, "skipped": True, "msg": f"{stage} has no check mode"}
            self._demand_controller()
            answer = self._module({**told, "journal": self._kept()})
            self._keep(answer.get("journal"))
        elif self._task.check_mode:
            answer = self._module({**told, "stage": "check"})
        else:
            answer = self._apply(told)
        shown = _told(answer, diff=self._task.diff or self._task.check_mode)
        if shown["refused"] and not shown.get("failed") and not boolean(self._task.args.get("refusals_ok", True)):
            shown.update(failed=True, msg=f"refused: {'; '.join(shown['refused'])}")
        return {**result, "run": told["run"], **shown}

    def _apply(self, told: dict[str, Any]) -> dict[str, Any]:
        prepared = self._module({**told, "stage": "prepare"})
        if prepared.get("failed") or not prepared.get("pending"):
            return prepared
        try:
            self._keep(prepared["journal"])
        except OSError as error:
            self._module({**told, "stage": "release"})
            raise AnsibleActionFail(f"the journal cannot be kept here, nothing was written: {error}") from error
        self._demand_controller()
        answer = self._module({**told, "stage": "commit"})
        self._keep(answer.get("journal"))
        answer.setdefault("begun", "format" not in answer)  # a module that was killed may have got anywhere
        return answer

    def _read_arguments(self, host: str) -> dict[str, Any]:
        arguments = self._task.args
        self._folder = Path(arguments["journal_dir"]) if arguments.get("journal_dir") else None
        if self._folder is not None and not _HOST.fullmatch(host):
            raise AnsibleActionFail(f"no name for a file: {host!r}")
        self._host = host
        steps, acts = arguments.get("settings") or [], arguments.get("acts") or []
        file = self._folder / "steps" / f"{host}.json" if self._folder else None
        if file is not None and not steps and not acts and file.is_file():
            planned = json.loads(file.read_text(encoding="utf-8"))
            steps, acts = planned["steps"], planned["acts"]
        return {
            "stage": arguments.get("stage") or "apply",
            "run": arguments.get("run") or f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}",
            "holder": arguments.get("holder") or f"{getpass.getuser()}@{socket.gethostname()}",
            "steps": steps,
            "acts": acts,
            "idle": {"ignore": arguments.get("idle_ignore") or [], "skip": bool(arguments.get("idle_skip"))},
        }

    def _module(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._execute_module(
            module_name=_MODULE, module_args={"request": request}, task_vars=self._vars, wrap_async=False
        )

    # ---------------------------------------------------------------------------------------------- on the controller

    def _demand_controller(self) -> None:
        """Stop when the hwcheck that started this play has been killed, also where another one has taken over since."""
        lock = self._folder / "lock" if self._folder else None
        session = self._task.args.get("session")
        if lock is None or not session:
            return
        with lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if file.read(100).decode() == session:
                    return
        raise AnsibleActionFail("the hwcheck that started this play has ended; nothing was written")

    def _journal_file(self) -> Path | None:
        return self._folder / "journal" / f"{self._host}.json" if self._folder else None

    def _kept(self) -> Any:
        file = self._journal_file()
        if file is None or not file.is_file():
            return None
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise AnsibleActionFail(
                f"{file} is damaged, nothing was undone; without it the node's own journal counts: {error}"
            ) from error

    def _keep(self, journal: Any) -> None:
        """Write a journal down for good."""
        file = self._journal_file()
        if file is None or not isinstance(journal, dict):
            return
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, path = tempfile.mkstemp(prefix=".begun-", dir=file.parent)
        with os.fdopen(fd, "w", encoding="utf-8") as begun:
            json.dump(journal, begun)
            begun.flush()
            os.fsync(begun.fileno())
        Path(path).replace(file)


def _told(answer: dict[str, Any], *, diff: bool) -> dict[str, Any]:
    """Shape an answer as Ansible shows it."""
    told = {
        key: value for key, value in answer.items() if key not in ("invocation", "changes", "journal", "differences")
    }
    results = answer.get("results") or []
    told["reboot_required"] = any("next boot" in str(one.get("why", "")) for one in results if isinstance(one, dict))
    told["refused"] = [
        f"{one.get('id')}: {one.get('why')}" for one in results if one.get("status") in ("refused", "stale")
    ]
    if diff:
        told["diff"] = [{"prepared": text} for text in answer.get("differences") or []]
    return told
