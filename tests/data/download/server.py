"""A real HTTP server on localhost whose manners can be spoiled."""

import hashlib
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """What is served, how badly, and what was asked for.

    files: path -> bytes. cut: path -> how many bytes to send before dropping the connection, a list
    used up answer by answer. status: path -> statuses to answer first, used up likewise. stall:
    paths that never answer.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    cut: dict[str, list[int]] = field(default_factory=dict)
    status: dict[str, list[int]] = field(default_factory=dict)
    redirect: dict[str, str] = field(default_factory=dict)
    stall: set[str] = field(default_factory=set)
    headers: dict[str, str] = field(default_factory=dict)  # more headers, for every answer
    ranges: bool = True
    tags: bool = True
    lengths: bool = True
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    def asked(self, path):
        """The headers of every request for a path, in order."""
        return [headers for found, headers in self.requests if found == path]

    def release(self, project):
        """Serve files as PhysioNet does, with their sums."""
        self.files.update({f"/{path}": data for path, data in project.items()})
        lines = [f"{hashlib.sha256(data).hexdigest()} {path}" for path, data in project.items()]
        self.files["/SHA256SUMS.txt"] = ("\n".join(lines) + "\n").encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    site: Site

    def log_message(self, *_):
        pass

    def do_GET(self):
        site, path = self.site, self.path.split("?")[0]
        site.requests.append((path, dict(self.headers)))
        if path in site.stall:
            site.over.wait(10)
            self.close_connection = True
            return
        if path in site.redirect:
            self.answer(302, b"", Location=site.redirect[path])
        elif site.status.get(path):
            self.answer(site.status[path].pop(0), b"trouble")
        elif path not in site.files:
            self.answer(404, b"not here")
        else:
            self.answer_file(path, site.files[path])

    def answer_file(self, path, data):
        site, extra = self.site, dict(self.site.headers)
        tag = f'"{hashlib.md5(data).hexdigest()}"'
        if site.tags:
            extra["ETag"] = tag
        asked = self.headers.get("Range")
        condition = self.headers.get("If-Range")
        if asked and site.ranges and condition in (None, tag):
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= len(data):
                self.answer(416, b"", **{"Content-Range": f"bytes */{len(data)}"})
                return
            extra["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self.answer(206, data[start:], cut=self.take_cut(path), **extra)
        else:
            self.answer(200, data, cut=self.take_cut(path), **extra)

    def take_cut(self, path):
        cuts = self.site.cut.get(path)
        return cuts.pop(0) if cuts else None

    def answer(self, status, body, cut=None, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.site.lengths:
            self.send_header("Content-Length", str(len(body)))
        else:
            self.close_connection = True
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.wfile.flush()
            self.close_connection = True


@contextmanager
def serve():
    """Run a server for the length of a test."""
    site = Site()
    handler = type("Handler", (_Handler,), {"site": site})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        site.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
