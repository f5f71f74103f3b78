"""A browser for tests: pages at a width and in a colour scheme, asked with JavaScript.

Chromium without a window is at least 500 px wide, whatever `--window-size` says. So the width is
set over its DevTools protocol, which also sets the colour scheme and runs expressions in pages
whose policy allows no script. The messages are JSON, each ended by a zero byte, over two pipes.
"""

import base64
import json
import os
import shutil
import subprocess
from tempfile import TemporaryDirectory

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_PIPES = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'  # the browser reads from 3 and writes to 4


class Browser:
    """One browser; `open` shows a page in it, `ask` and `photograph` look at that page."""

    def __enter__(self):
        self._profile = TemporaryDirectory(ignore_cleanup_errors=True)
        (reads, self._to), (self._from, writes) = os.pipe(), os.pipe()
        start = ["bash", "-c", _PIPES, "pipes", str(reads), str(writes), BROWSER, *_OPTIONS]
        self._process = subprocess.Popen(
            [*start, f"--user-data-dir={self._profile.name}", "--remote-debugging-pipe"],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._number, self._rest, self._session, self.complaints = 0, b"", None, []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self._session = None
        self._call("Browser.close")
        self._process.wait(timeout=30)
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    def open(self, page, width, scheme="light"):
        """Show a file on a screen of this width; `complaints` are then those of this page."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        chosen = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", media="screen", features=chosen)
        self.complaints = []
        self._call("Page.navigate", url=page.as_uri())
        self._wait_for("Page.loadEventFired")

    def ask(self, expression):
        """Return the value of an expression of JavaScript in the page."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def photograph(self, file):
        """Write the whole page as a PNG."""
        taken = self._call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _wait_for(self, event):
        while (message := self._read()).get("method") != event:
            self._note(message)

    def _note(self, message):
        """Keep what the page complains about: a request or a script that its policy refuses."""
        if message.get("method") == "Log.entryAdded":
            self.complaints.append(message["params"]["entry"]["text"])
        elif message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.complaints.append(json.dumps(message["params"]))

    def _read(self):
        while b"\0" not in self._rest:
            part = os.read(self._from, 2**16)
            if not part:
                raise RuntimeError("the browser has ended")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)
