"""The least of a client: what bringing a cluster up needs to ask its API server. Tests use kubectl, or the product's own client."""

import http.client
import json
import ssl

TIMEOUT_SECONDS = 10


class Api:
    def __init__(self, layout):
        context = ssl.create_default_context(cafile=layout.certificates / "ca.crt")
        context.load_cert_chain(layout.certificates / "kubernetes-admin.crt", layout.certificates / "kubernetes-admin.key")
        self.context, self.host, self.port = context, str(layout.host_address), int(layout.api_server.rsplit(":", 1)[1])

    def call(self, method, path, body=None):
        """(status, text); (0, reason) when there is no answer."""
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=TIMEOUT_SECONDS, context=self.context)
        try:
            connection.request(method, path, body=None if body is None else json.dumps(body), headers={"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)
        finally:
            connection.close()

    def get(self, path):
        """The object, or None where the server does not have it or does not answer."""
        status, text = self.call("GET", path)
        return json.loads(text) if status == 200 else None

    def create(self, path, value):
        """Also right when it is there already."""
        status, text = self.call("POST", path, value)
        return status in (200, 201, 409), text
