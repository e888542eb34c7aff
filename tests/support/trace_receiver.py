"""A receiver of OTLP's traces over HTTP, for tests."""

import http.server
import json
import threading


def _plain(value):
    kind, content = next(iter(value.items()))
    return [_plain(each) for each in content["values"]] if kind == "arrayValue" else int(content) if kind == "intValue" else content


class Trace:
    """One trace's spans, the root apart from its parts."""

    def __init__(self, spans):
        self.root = next(span for span in spans if "parentSpanId" not in span)
        self.parts = [span for span in spans if span is not self.root]
        self.ids = {span["spanId"] for span in spans}
        self.attributes = {each["key"]: _plain(each["value"]) for each in self.root["attributes"]}


class TraceReceiver:
    """`requests` are those that came, each with its `headers` and `spans`; `status` is the answer to each."""

    def __init__(self, status=200, address="127.0.0.1"):
        self.requests = []
        requests = self.requests

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                taken = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
                self.spans = [span for resource in body["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]]
                requests.append(self)
                self.send_response(status if taken else 400)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.url = f"http://{address}:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def traces(self):
        """Those that came so far."""
        by_id = {}
        for request in list(self.requests):
            for span in request.spans:
                by_id.setdefault(span["traceId"], []).append(span)
        return [Trace(spans) for spans in by_id.values()]
