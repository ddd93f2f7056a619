"""Asks the server of benches/flood.rs every 10 ms for as many seconds as the argument says, beside a flood, and prints
how many requests it sent and how many replies came within 100 ms."""

import socket
import struct
import sys
import time

asked = answered = 0
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(0.1)
        one.connect(("10.79.0.1", 123))
        asked += 1
        request = struct.pack(">B39xQ", 0x23, asked)
        one.send(request)
        try:
            reply = one.recv(100)
        except TimeoutError:
            continue
        # The origin is the request's transmit time.
        answered += len(reply) == 48 and reply[24:32] == request[40:]
    time.sleep(0.01)
print(asked, answered)
