"""Sends NTP requests to the server's host of benches/flood.rs until it is killed; FFCLOCK_XDP_RATE is how many a
second, 0 as many as there can be. One call hands 64 requests to the kernel, which cuts them apart (UDP_SEGMENT) before
they reach the device, so that one processor can offer more than another answers. With FFCLOCK_XDP_FORGED each burst has another
source, of 2^20 addresses of 10.128.0.0/9, which must be local here for the kernel to send in their names."""

import os
import socket
import struct
import time

IP_PKTINFO = 8
UDP_SEGMENT = 103
SERVER = ("10.79.0.1", 123)
REQUESTS, SOCKETS = 64, 64
rate = int(os.environ["FFCLOCK_XDP_RATE"])
forged = "FFCLOCK_XDP_FORGED" in os.environ
requests = b"".join(struct.pack(">B39xQ", 0x23, number + 1) for number in range(REQUESTS))
sockets = []
for _ in range(SOCKETS):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, len(requests) // REQUESTS)
    # Nothing reads the replies: what the socket has no room for is cheapest.
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
    if not forged:
        one.connect(SERVER)
    sockets.append(one)



def send(socket_, burst):
    if not forged:
        socket_.send(requests)
        return
    # An odd factor visits every address once before it begins again.
    address = struct.pack(">I", 0x0A800000 + (burst * 0x9E3779B1 & 0xFFFFF))
    source = struct.pack("i4s4s", 0, address, bytes(4))
    socket_.sendmsg([requests], [(socket.IPPROTO_IP, IP_PKTINFO, source)], 0, SERVER)


begin, sent = time.perf_counter(), 0
while True:
    try:
        send(sockets[sent // REQUESTS % SOCKETS], sent // REQUESTS)
    except OSError:
        pass  # the device has no room
    sent += REQUESTS
    while rate and time.perf_counter() - begin < sent / rate:
        pass
