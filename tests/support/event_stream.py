"""Server-sent events, as a dashboard tells them."""

import json


def events_of(response):
    """The events of an answer that is a stream, until it ends: (name, data)."""
    assert response.status == 200, response.status
    name = ""
    for line in response:
        line = line.decode().rstrip("\n")
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))
