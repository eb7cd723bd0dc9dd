"""A scripted session with rx-lsp: the first diagnostic of a program, and the first run of one."""

import json
import queue
import subprocess
import threading
import time

# Time limit for an answer in seconds; generous, for busy machines.
DEADLINE = 120


class Server:
    """A running rx-lsp after `initialize`. Leaving the `with` block shuts it down and requires exit status 0."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options
        )
        self.messages = queue.Queue()
        self.last_id = 0
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        try:
            self.request("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
            self.notify("initialized", {})
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.request("shutdown", None)
                self.notify("exit", None)
                status = self.process.wait(DEADLINE)
                assert status == 0, f"rx-lsp ended with status {status} after `exit`"
        finally:
            self.process.kill()

    def open(self, uri, text):
        """Opens a document and returns the diagnostics that the server publishes for it."""
        document = {"uri": uri, "languageId": "relax", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

        def published(message):
            return message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri

        return self._wait(published)["params"]["diagnostics"]

    def request(self, method, params):
        """Sends a request and returns its result; an error of the server becomes an AssertionError."""
        self.last_id += 1
        own = self.last_id
        self._send({"id": own, "method": method, "params": params})
        answer = self._wait(lambda message: "method" not in message and message.get("id") == own)
        assert "error" not in answer, f"rx-lsp answers {method} with the error {answer['error']}"
        return answer["result"]

    def notify(self, method, params):
        self._send({"method": method, "params": params})

    def _send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        try:
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            self.process.stdin.flush()
        except OSError as error:
            raise AssertionError(f"rx-lsp closed its input: {error}") from None

    def _wait(self, wanted):
        """Returns the next message that `wanted` accepts. Earlier messages are dropped; requests of the server are
        answered with null."""
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                message = self.messages.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"rx-lsp sent no answer in {DEADLINE} s") from None
            assert message is not None, "rx-lsp closed its output"
            if "method" in message and "id" in message:
                self._send({"id": message["id"], "result": None})
            if wanted(message):
                return message

    def _read(self):
        """Puts each message of the server into the queue, then None at the end of its output."""
        output = self.process.stdout
        while True:
            length = None
            while (line := output.readline().strip()):
                name, value = line.split(b":", 1)
                if name.lower() == b"content-length":
                    length = int(value)
            if length is None:
                self.messages.put(None)
                return
            self.messages.put(json.loads(output.read(length)))


def first_diagnostic(server, uri, text, code):
    """Opens a program that has a mistake and requires the diagnostic `code`."""
    codes = [diagnostic.get("code") for diagnostic in server.open(uri, text)]
    assert code in codes, f"rx-lsp published {codes} for {uri}; expected {code}"


def first_run(server, uri, text):
    """Opens a correct program, runs its `main` by the command `rx.run` and requires one output."""
    found = server.open(uri, text)
    assert not found, f"rx-lsp published {found} for {uri}; expected no diagnostic"
    answer = server.request("workspace/executeCommand", {"command": "rx.run", "arguments": [uri, "main"]})
    assert answer["ok"], f"rx.run failed: {answer['message']}"
    assert answer["outputs"], f"rx.run returned no outputs: {answer}"
