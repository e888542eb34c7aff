#!/usr/bin/env python3
"""Holds the packets of a netfilter queue of this network namespace up for so long: benchmarks/delay_packets.py QUEUE SECONDS.

A link that delays, made in user space where the kernel has no netem: a rule `-j NFQUEUE --queue-num QUEUE` chooses the packets. Prints `ready` once it
listens, and ends with SIGTERM. As linux/netfilter/nfnetlink_queue.h has it.
"""

import collections
import select
import socket
import struct
import sys
import time

NETLINK_NETFILTER, QUEUE_SUBSYSTEM = 12, 3
PACKET, VERDICT, CONFIG = 0, 1, 2            # messages
REQUEST = 1                                  # flag
COMMAND, PARAMETERS, MOST_WAITING = 1, 2, 3  # attributes of CONFIG
BIND, ONLY_META = 1, 1
PACKET_HEADER, VERDICT_HEADER, ACCEPT = 1, 2, 1


def attribute(kind, data):
    length = 4 + len(data)
    return struct.pack("=HH", length, kind) + data + b"\0" * (-length % 4)


def message(kind, queue, *attributes):
    body = struct.pack(">BBH", socket.AF_UNSPEC, 0, queue) + b"".join(attributes)
    return struct.pack("=IHHII", 16 + len(body), QUEUE_SUBSYSTEM << 8 | kind, REQUEST, 0, 0) + body


def packets(data):
    """The ids of the packets that a datagram tells of."""
    while len(data) >= 20:
        length, kind = struct.unpack_from("=IH", data)
        at = 20
        while kind == QUEUE_SUBSYSTEM << 8 | PACKET and at + 4 <= length:
            size, name = struct.unpack_from("=HH", data, at)
            if name & 0x3FFF == PACKET_HEADER:
                yield struct.unpack_from(">I", data, at + 4)[0]
            at += (size + 3) & ~3
        data = data[(length + 3) & ~3:]


def main(queue, seconds):
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    kernel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    kernel.bind((0, 0))
    kernel.send(message(CONFIG, queue, attribute(COMMAND, struct.pack(">BxH", BIND, 0))))
    kernel.send(message(CONFIG, queue, attribute(PARAMETERS, struct.pack(">IB", 0, ONLY_META)), attribute(MOST_WAITING, struct.pack(">I", 100_000))))
    print("ready", flush=True)
    waiting = collections.deque()
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([kernel], [], [], timeout)[0]:
            until = time.monotonic() + seconds
            waiting.extend((until, number) for number in packets(kernel.recv(1 << 16)))
        while waiting and waiting[0][0] <= time.monotonic():
            kernel.send(message(VERDICT, queue, attribute(VERDICT_HEADER, struct.pack(">II", ACCEPT, waiting.popleft()[1]))))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
