/*
 * Sends test packets to `ffclock-lab probe echo`, for probe.d to look at. Any POSIX system:
 *
 *   cc -O2 -o probe-client probe-client.c && ./probe-client 192.0.2.7 10000 100
 *
 * A packet is 32 bytes of identity, and padding up to a length that changes from packet to packet: events that know
 * only the length identify the packet by it. Replies are one byte shorter (lab/probe/src/payload.rs).
 */
#include <sys/types.h>
#include <sys/socket.h>

#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PORT "8777"
#define SHORTEST 64
#define LENGTHS 128

static void put(unsigned char *place, uint64_t value)
{
	for (int byte = 7; byte >= 0; byte--, value >>= 8)
		place[byte] = (unsigned char)value;
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Receives packets until `deadline`, and returns their number. */
static long receive_until(int fd, int64_t deadline)
{
	unsigned char buffer[2048];
	long received = 0;
	for (;;) {
		int64_t rest = deadline - now_ns();
		struct pollfd entry = { .fd = fd, .events = POLLIN };
		if (poll(&entry, 1, rest > 0 ? (int)((rest + 999999) / 1000000) : 0) > 0 && recv(fd, buffer, sizeof buffer, 0) > 0)
			received++;
		else if (rest <= 0)
			return received;
	}
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: probe-client HOST [PACKETS [PER-SECOND [PORT]]]\n");
		return 2;
	}
	long packets = argc > 2 ? atol(argv[2]) : 10000;
	double rate = argc > 3 ? atof(argv[3]) : 100;
	if (packets < 1 || !(rate > 0)) {
		fprintf(stderr, "probe-client: the number of packets and the rate must be positive\n");
		return 2;
	}
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_DGRAM }, *found;
	int error = getaddrinfo(argv[1], argc > 4 ? argv[4] : PORT, &hints, &found);
	if (error != 0) {
		fprintf(stderr, "probe-client: %s: %s\n", argv[1], gai_strerror(error));
		return 1;
	}
	int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
		perror("probe-client");
		return 1;
	}
	/* The kernel stamps received packets. */
	setsockopt(fd, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof on);
	unsigned char packet[SHORTEST + 2 * LENGTHS];
	memset(packet, 0x5a, sizeof packet);
	memset(packet, 0, 32);
	memcpy(packet, "ffprobe1", 8);
	put(packet + 8, (uint64_t)now_ns() ^ (uint64_t)getpid() << 40);
	int64_t begin = now_ns();
	long received = 0;
	for (long sequence = 0; sequence < packets; sequence++) {
		received += receive_until(fd, begin + (int64_t)(sequence / rate * 1e9));
		put(packet + 16, (uint64_t)sequence);
		if (send(fd, packet, SHORTEST + 2 * (size_t)(sequence % LENGTHS), 0) < 0)
			perror("probe-client: send");
	}
	received += receive_until(fd, now_ns() + 1000000000);
	fprintf(stderr, "probe-client: %ld sent, %ld received\n", packets, received);
	return received > 0 ? 0 : 1;
}
