"""What iperf3 moves over this machine's loopback: a limit that everybody knows. scripts/setup --benchmarks installs it."""

import contextlib
import json
import shutil
import socket
import subprocess
import threading

START_SECONDS = 10
SPARE_SECONDS = 30   # for all but moving
ATTEMPTS = 3         # a port that was free may have been taken


def is_here():
    return shutil.which("iperf3") is not None


def rate(document):
    """Bytes per second that the server of one client received, of the client's JSON. Pure; ValueError: iperf3's own error."""
    if "error" in document:
        raise ValueError(f"iperf3: {document['error']}")
    return document["end"]["sum_received"]["bits_per_second"] / 8


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def end(process):
    if process.poll() is None:
        process.kill()
    process.communicate()


def listening_server(stack):
    """The port of a server of one test, which ends with the stack."""
    said = []
    for _ in range(ATTEMPTS):
        port = free_port()
        server = subprocess.Popen(["iperf3", "--server", "--one-off", "--forceflush", "--bind", "127.0.0.1", "--port", str(port)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        stack.callback(end, server)
        watchdog = threading.Timer(START_SECONDS, server.kill)
        watchdog.start()
        listens = False
        for line in server.stdout:   # ends with the server
            said.append(line.strip())
            listens = "Server listening" in line
            if listens:
                break
        watchdog.cancel()
        if listens:
            return port
    raise RuntimeError(f"iperf3 does not listen: {' '.join(said)[-500:]}")


def measure(pairs, streams, seconds):
    """GB/s of all pairs of a client and a server process at once, each with so many connections, one way."""
    with contextlib.ExitStack() as stack:
        ports = [listening_server(stack) for _ in range(pairs)]
        clients = []
        for port in ports:
            command = ["iperf3", "--client", "127.0.0.1", "--port", str(port), "--parallel", str(streams), "--time", str(seconds), "--json"]
            clients.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(end, clients[-1])
        return sum(rate(json.loads(client.communicate(timeout=seconds + SPARE_SECONDS)[0])) for client in clients) / 1e9
