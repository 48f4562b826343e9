"""A headless Chromium that a test drives through its debugging pipe (the Chrome DevTools protocol)."""
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

from harness import HANG, Failure

NAMES = ("chromium", "chromium-browser", "google-chrome")
HIGH = 20  # descriptors that are not the browser's: it reads 3 and writes 4


def installed():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page. What it asked for, and what its scripts complained about, is in `requests` and `complaints`."""

    def __init__(self, folder, width=1280, height=800):
        self.requests, self.complaints = [], []
        self.number, self.rest = 0, b""
        to_read, self.out = (fcntl.fcntl(end, fcntl.F_DUPFD, HIGH) for end in os.pipe())
        self.into, to_write = (fcntl.fcntl(end, fcntl.F_DUPFD, HIGH) for end in os.pipe())

        def take_descriptors():
            os.dup2(to_read, 3)
            os.dup2(to_write, 4)

        self.process = subprocess.Popen(
            [installed(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
             f"--user-data-dir={folder}/profile", f"--window-size={width},{height}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=take_descriptors, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        targets = self.call("Target.getTargets", session=None)["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", session=None, targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)

    def message(self):
        end = time.monotonic() + HANG
        while b"\0" not in self.rest:
            if not select.select([self.into], [], [], max(0, end - time.monotonic()))[0]:
                raise Failure("the browser does not answer")
            got = os.read(self.into, 1 << 16)
            if not got:
                raise Failure("the browser ended")
            self.rest += got
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session="own", **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if session == "own":
            request["sessionId"] = self.session
        os.write(self.out, json.dumps(request).encode() + b"\0")
        while (answer := self.message()).get("id") != self.number:
            self.hear(answer)
        if "error" in answer:
            raise Failure(f"{method}: {answer['error']}")
        return answer["result"]

    def hear(self, event):
        about, kind = event.get("params", {}), event.get("method")
        if kind == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif kind == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif kind == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.complaints.append(about["entry"]["text"])

    def value(self, script):
        """What an expression is, or the promise that it is resolves to."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise Failure(f"{script}: {result['exceptionDetails']['exception'].get('description')}")
        return result["result"].get("value")

    def wait_for(self, condition):
        """Until a condition holds; looked at before each frame."""
        try:
            self.value("new Promise(done => { const look = () => ((() => { try { return " + condition + "; } catch { return false; } })()"
                       " ? done(true) : requestAnimationFrame(look)); look(); })")
        except Failure as failure:
            raise Failure(f"waiting for {condition}: {failure}") from failure

    def open(self, path):
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for("document.documentElement.dataset.ready === 'true'")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, start, end):
        self.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1)
        self.mouse("mouseMoved", *end, button="left", buttons=1)
        self.mouse("mouseReleased", *end, button="left", clickCount=1)

    def key(self, key, **more):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def middle(self, selector, x=0.5, y=0.5):
        """A point in an element that is scrolled into view."""
        return self.value(f"(() => {{ const it = document.querySelector({json.dumps(selector)}); it.scrollIntoView({{block: 'center'}});"
                          f" const at = it.getBoundingClientRect(); return [at.x + at.width * {x}, at.y + at.height * {y}]; }})()")

    def screenshot(self, path, whole=True):
        import base64
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))
