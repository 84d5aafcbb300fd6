"""
A headless Chromium that tests drive by the DevTools protocol, over a pair of pipes (``--remote-debugging-pipe``).

No package is needed for it: messages are JSON, each ended by a zero byte. Only what the tests use is here.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = (
    "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio",
    "--remote-debugging-pipe", "--window-size=1400,1000",
)  # fmt: skip
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
        "ArrowRight": 39, "ArrowDown": 40, "/": 191}  # fmt: skip
_TEXT = {"Enter": "\r", " ": " ", "/": "/"}
PATIENCE = 20.0
"""Seconds until a browser that does not answer fails the test: the machine of a pipeline is slow."""


class Browser:
    """
    One browser with one page.

    Args:
        folder: for its profile; must not exist before.

    Attributes:
        events: what the page said since it was opened: records of ``method`` and ``params``.
    """

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        there, self._out = os.pipe()
        self._in, back = os.pipe()
        sandbox = ["--no-sandbox"] if os.getuid() == 0 else []  # Chromium refuses to sandbox root
        # bash, since dash takes only one digit; the browser reads commands from 3 and writes answers to 4
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{there} 4>&{back}', "bash", CHROMIUM, *ARGUMENTS, *sandbox,
             f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(there, back), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(there)
        os.close(back)
        self._number, self._rest, self._session = 0, b"", ""
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        os.close(self._out)
        os.close(self._in)
        self._process.terminate()
        self._process.wait(PATIENCE)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come before it are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            assert ready, "the browser does not answer"
            piece = os.read(self._in, 1 << 16)
            assert piece, "the browser is gone"
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def open(self, page: Path, place: str = "", **media: str) -> None:
        """Load a file; ``media`` are media features with - as _, such as ``prefers_color_scheme="dark"``."""
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        self.ask("Emulation.setEmulatedMedia", features=features)
        self.ask("Page.navigate", url="about:blank")  # else another place of the same file would not load it anew
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri() + place)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def value(self, expression: str) -> Any:
        """Evaluate JavaScript in the page; a promise is waited for."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until JavaScript is true."""
        end = time.monotonic() + PATIENCE
        while not self.value(f"Boolean({expression})"):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        """Return what is read on the first element; "" where there is none."""
        return str(self.value(f"document.querySelector({json.dumps(selector)})?.innerText || ''"))

    def click(self, selector: str) -> None:
        """Click into the middle of the first element, as a person does."""
        box = self.value(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)});"
            "found.scrollIntoView({block: 'center'}); const box = found.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def press(self, *keys: str) -> None:
        """Press keys one after the other; a longer text is typed."""
        for key in keys:
            if key not in KEYS:
                self.ask("Input.insertText", text=key)
                continue
            about = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key], "text": _TEXT.get(key, "")}
            self.ask("Input.dispatchKeyEvent", type="keyDown", **about)
            self.ask("Input.dispatchKeyEvent", type="keyUp", **about)

    def requests(self) -> list[str]:
        """Return the addresses that the page has asked for."""
        self.value("1")  # what was on its way has come before the answer
        sent = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent]

    def complaints(self) -> list[str]:
        """Return errors of the program and of the page's policy."""
        self.value("1")
        found = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"]))
            if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"])
        return found

    def picture(self, path: Path) -> None:
        """Keep what is seen, as PNG."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
