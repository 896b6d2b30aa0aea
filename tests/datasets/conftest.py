"""A server on this machine, and a mark for tests that read a filled data home."""

import http.server
import os
import threading
from pathlib import Path

import pytest

from regbayes.datasets._remote import RemoteFile

DATA = os.environ.get("REGBAYES_DATA", "")


def real(folder):
    """Skip mark for tests that read a folder of a filled data home."""
    return pytest.mark.skipif(
        not (DATA and Path(DATA, folder).is_dir()),
        reason=f"needs the folder {folder} in the data home named by REGBAYES_DATA",
    )


class Server:
    """Answers each path with a list of (status, body) in turn; the last one stays."""

    def __init__(self):
        self.answers, self.requests = {}, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                queue = outer.answers.get(self.path, [(404, "")])
                status, body, *promised = queue.pop(0) if len(queue) > 1 else queue[0]
                body = body if isinstance(body, bytes) else body.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(promised[0] if promised else len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                """Keep the test's output clean."""

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def file(self, path, *answers):
        self.answers[path] = list(answers)
        return RemoteFile(f"http://127.0.0.1:{self.http.server_port}{path}", pause=0.01, timeout=5)

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    yield running
    running.close()
