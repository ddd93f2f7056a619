"""Sends NTP requests to the server's host of benches/flood.rs until it is killed; FFCLOCK_XDP_RATE is how many a
second, 0 as many as there can be. One call hands 64 requests to the kernel, which cuts them apart (UDP_SEGMENT) before
they reach the device, so that one processor can offer more than another answers."""

import os
import socket
import struct
import time

UDP_SEGMENT = 103
REQUESTS, SOCKETS = 64, 64
rate = int(os.environ["FFCLOCK_XDP_RATE"])
requests = b"".join(struct.pack(">B39xQ", 0x23, number + 1) for number in range(REQUESTS))
sockets = []
for _ in range(SOCKETS):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, len(requests) // REQUESTS)
    # Nothing reads the replies: what the socket has no room for is cheapest.
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
    one.connect(("10.79.0.1", 123))
    sockets.append(one)

begin, sent = time.perf_counter(), 0
while True:
    try:
        sockets[sent // REQUESTS % SOCKETS].send(requests)
    except OSError:
        pass  # the device has no room
    sent += REQUESTS
    while rate and time.perf_counter() - begin < sent / rate:
        pass
