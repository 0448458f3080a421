"""A headless Chromium for a test, over the WebDriver protocol. Needs only Python's standard library, and Debian's packages
chromium and chromium-driver."""
import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"enter": "\ue007", "shift": "\ue008", "escape": "\ue00c", "tab": "\ue004", "space": " ", "down": "\ue015"}
WAIT_SECONDS = 60


def missing():
    """The programs that are not installed here."""
    return [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


class Browser:
    """One window."""

    def __init__(self, folder):
        """folder: an empty one, for the browser's files."""
        # Chromium writes to the home directory.
        self.reader = None
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       text=True, env={**os.environ, "HOME": folder})
        try:
            self._start(folder)
        except BaseException:
            self._end_driver()
            raise

    def _start(self, folder):
        port = None
        for line in self.driver.stdout:
            if found := re.search(r"successfully on port (\d+)", line):
                port = found[1]
                break
        assert port, "chromedriver did not start"
        self.url = f"http://127.0.0.1:{port}/session"
        self.reader = threading.Thread(target=lambda: [None for _ in self.driver.stdout], daemon=True)
        self.reader.start()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--no-proxy-server", "--disable-background-networking", "--window-size=1100,900",
                 f"--user-data-dir={folder}/profile"]
        made = self._call("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": {"args": flags}, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.url += "/" + made["sessionId"]

    def _call(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=2 * WAIT_SECONDS) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def run(self, script, *args):
        """Runs the body of a function; its result."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def until(self, script, *args):
        """Waits until the function returns something true, and returns that."""
        end = time.monotonic() + WAIT_SECONDS
        while not (value := self.run(script, *args)):
            assert time.monotonic() < end, f"this does not become true: {script}\nthe page: {self.text('body')}"
            time.sleep(0.05)
        return value

    def _element(self, selector):
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        return "/element/" + found[ELEMENT]

    def click(self, selector):
        self._call("POST", self._element(selector) + "/click", {})

    def type(self, selector, text):
        """Keys into an element; names of KEYS in braces: "Hi{enter}"."""
        keys = re.sub(r"\{(\w+)\}", lambda m: KEYS[m[1]], text)
        self._call("POST", self._element(selector) + "/value", {"text": keys})

    def press(self, key):
        """A key, wherever the focus is."""
        actions = [{"type": kind, "value": KEYS[key]} for kind in ("keyDown", "keyUp")]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText", selector)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._call("GET", "/screenshot")))

    def devtools(self, command, **params):
        """A command of Chromium's DevTools protocol; its result."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def prefer(self, scheme):
        """Lets the system prefer a scheme: light or dark."""
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def resize(self, width, height, zoom=1, touch=False):
        """The page's size in pixels of the screen; zoom: 2 is 200 %."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=int(width / zoom), height=int(height / zoom), deviceScaleFactor=zoom, mobile=touch)

    def forget(self):
        """Removes what pages of this server have stored."""
        self.run("sessionStorage.clear(); localStorage.clear()")
        origin = self.run("return location.origin")
        self.open("about:blank")
        self.devtools("Storage.clearDataForOrigin", origin=origin, storageTypes="all")

    def frames(self, count):
        """Waits until so many frames have been drawn."""
        self._call("POST", "/execute/async", {"script": "const done = arguments[1]; let left = arguments[0];"
                                              "const next = () => left-- ? requestAnimationFrame(next) : done(); next()", "args": [count]})

    def upload(self, selector, *paths):
        """Chooses files in an input element."""
        self._call("POST", self._element(selector) + "/value", {"text": "\n".join(map(str, paths))})

    def window(self):
        """The window that commands go to."""
        return self._call("GET", "/window")

    def new_window(self):
        """Opens another tab, to which commands go from now on; its handle."""
        made = self._call("POST", "/window/new", {"type": "tab"})["handle"]
        self.switch(made)
        return made

    def switch(self, window):
        self._call("POST", "/window", {"handle": window})

    def close_window(self, then):
        """Closes every other window than `then`."""
        for window in self._call("GET", "/window/handles"):
            if window != then:
                self.switch(window)
                self._call("DELETE", "/window")
        self.switch(then)

    def console(self):
        """The messages since the last call, as (level, text)."""
        return [(m["level"], m["message"]) for m in self._call("POST", "/se/log", {"type": "browser"})]

    def _end_driver(self):
        self.driver.terminate()
        self.driver.wait(30)
        if self.reader:
            self.reader.join(30)
        self.driver.stdout.close()

    def close(self):
        with contextlib.suppress(OSError, AssertionError):
            self._call("DELETE", "")
        self._end_driver()
