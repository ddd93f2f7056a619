/* Requests by the batch, and the least that a server can do with them.
 *
 *   flood echo PORT                        sends back whatever comes to this port of loopback, by batches of 64
 *   flood flood ADDRESS PORT SECONDS FILE  sends the packet in FILE from 64 sockets as fast as it can
 *   flood many ADDRESS PORT COUNT FILE     sends it once from each of COUNT addresses from 10.0.0.1 on, which must be
 *                                          local, never with more than 128 of them under way
 *
 *   flood forge ADDRESS PORT SECONDS FILE  sends it as fast as it can, each time from another of 2^20 addresses from
 *                                          10.0.0.1 on, which must be local; replies go where no one listens
 *
 * The last three print how many packets were sent and how many came back. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, SOCKETS = 64, PACKET_BYTES = 2048, UNDER_WAY = 128 };

static char room[BATCH][PACKET_BYTES];
static struct iovec parts[BATCH];
static struct sockaddr_in names[BATCH];
static struct mmsghdr heads[BATCH];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static struct sockaddr_in place(const char *address, const char *port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
    if (inet_pton(AF_INET, address, &name.sin_addr) != 1) fail(address);
    return name;
}

static int open_socket(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0) fail("socket");
    return fd;
}

static void prepare(int with_names) {
    for (int i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){room[i], PACKET_BYTES};
        heads[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
        if (with_names) {
            heads[i].msg_hdr.msg_name = &names[i];
            heads[i].msg_hdr.msg_namelen = sizeof names[i];
        }
    }
}

_Noreturn static void echo(const char *port) {
    struct sockaddr_in here = place("127.0.0.1", port);
    int fd = open_socket();
    if (bind(fd, (struct sockaddr *)&here, sizeof here) != 0) fail("bind");
    prepare(1);
    for (;;) {
        int count = recvmmsg(fd, heads, BATCH, MSG_WAITFORONE, NULL);
        if (count < 0) fail("recvmmsg");
        for (int i = 0; i < count; i++) parts[i].iov_len = heads[i].msg_len;
        for (int sent = 0; sent < count;) {
            int now = sendmmsg(fd, heads + sent, (unsigned)(count - sent), 0);
            sent += now > 0 ? now : 1;
        }
        for (int i = 0; i < count; i++) parts[i].iov_len = PACKET_BYTES;
    }
}

static size_t read_packet(const char *file, char *packet) {
    FILE *from = fopen(file, "rb");
    if (from == NULL) fail(file);
    size_t length = fread(packet, 1, PACKET_BYTES, from);
    fclose(from);
    return length;
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static unsigned long taken(int fd) {
    unsigned long all = 0;
    int count;
    while ((count = recvmmsg(fd, heads, BATCH, MSG_DONTWAIT, NULL)) > 0) all += (unsigned)count;
    return all;
}

static int flood(const char *address, const char *port, double seconds, const char *file) {
    static char packet[PACKET_BYTES];
    struct iovec part = {packet, read_packet(file, packet)};
    struct sockaddr_in there = place(address, port);
    struct mmsghdr outgoing[8] = {0};
    int fds[SOCKETS];
    unsigned long sent = 0, came = 0;
    for (int i = 0; i < 8; i++) outgoing[i].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
    prepare(0);
    for (int i = 0; i < SOCKETS; i++) {
        fds[i] = open_socket();
        if (connect(fds[i], (struct sockaddr *)&there, sizeof there) != 0) fail("connect");
    }
    for (double end = now_s() + seconds; now_s() < end;) {
        for (int i = 0; i < SOCKETS; i++) {
            int count = sendmmsg(fds[i], outgoing, 8, MSG_DONTWAIT);
            sent += count > 0 ? (unsigned)count : 0;
            came += taken(fds[i]);
        }
    }
    usleep(50000);
    for (int i = 0; i < SOCKETS; i++) came += taken(fds[i]);
    printf("%lu %lu\n", sent, came);
    return 0;
}

/* One packet whose source is the given address. */
static void send_from(int fd, struct sockaddr_in *there, struct iovec *part, unsigned address) {
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
    } control = {0};
    struct in_pktinfo source = {.ipi_spec_dst.s_addr = htonl(address)};
    struct msghdr message = {.msg_name = there, .msg_namelen = sizeof *there, .msg_iov = part, .msg_iovlen = 1,
        .msg_control = &control, .msg_controllen = sizeof control};
    control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof source), .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO};
    memcpy(CMSG_DATA(&control.head), &source, sizeof source);
    if (sendmsg(fd, &message, 0) < 0) fail("sendmsg");
}

static int many(const char *address, const char *port, long count, const char *file) {
    static char packet[PACKET_BYTES];
    struct iovec part = {packet, read_packet(file, packet)};
    struct sockaddr_in there = place(address, port);
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct pollfd waiting = {.fd = open_socket(), .events = POLLIN};
    long sent = 0, came = 0, given_up = 0;
    if (bind(waiting.fd, (struct sockaddr *)&any, sizeof any) != 0) fail("bind");
    prepare(0);
    while (sent < count) {
        for (int i = 0; i < 32 && sent < count; i++) send_from(waiting.fd, &there, &part, 0x0a000001u + (unsigned)sent++);
        came += (long)taken(waiting.fd);
        while (sent - came - given_up > UNDER_WAY) {
            if (poll(&waiting, 1, 1000) == 0) given_up = sent - came;
            came += (long)taken(waiting.fd);
        }
    }
    usleep(50000);
    came += (long)taken(waiting.fd);
    printf("%ld %ld\n", sent, came);
    return 0;
}

/* Like an attacker who forges addresses: the replies are for others. */
static int forge(const char *address, const char *port, double seconds, const char *file) {
    enum { ADDRESSES = 1 << 20 };
    static char packet[PACKET_BYTES];
    static union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
    } controls[BATCH];
    static struct iovec part;
    static struct sockaddr_in there;
    struct sockaddr_in any = {.sin_family = AF_INET};
    int fd = open_socket(), little = 0;
    unsigned long sent = 0;
    unsigned next = 0;
    if (bind(fd, (struct sockaddr *)&any, sizeof any) != 0) fail("bind");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little) != 0) fail("SO_RCVBUF");
    part.iov_base = packet;
    part.iov_len = read_packet(file, packet);
    there = place(address, port);
    for (int i = 0; i < BATCH; i++) {
        struct msghdr *message = &heads[i].msg_hdr;
        controls[i].head.cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
        controls[i].head.cmsg_level = IPPROTO_IP;
        controls[i].head.cmsg_type = IP_PKTINFO;
        message->msg_name = &there;
        message->msg_namelen = sizeof there;
        message->msg_iov = &part;
        message->msg_iovlen = 1;
        message->msg_control = controls[i].bytes;
        message->msg_controllen = sizeof controls[i].bytes;
    }
    for (double end = now_s() + seconds; now_s() < end;) {
        for (int i = 0; i < BATCH; i++) {
            struct in_pktinfo source;
            memset(&source, 0, sizeof source);
            source.ipi_spec_dst.s_addr = htonl(0x0a000001u + next++ % ADDRESSES);
            memcpy(controls[i].bytes + CMSG_LEN(0), &source, sizeof source);
        }
        int count = sendmmsg(fd, heads, BATCH, 0);
        sent += count > 0 ? (unsigned)count : 0;
    }
    printf("%lu 0\n", sent);
    return 0;
}

int main(int count, char **words) {
    if (count == 3 && strcmp(words[1], "echo") == 0) echo(words[2]);
    if (count == 6 && strcmp(words[1], "flood") == 0) return flood(words[2], words[3], atof(words[4]), words[5]);
    if (count == 6 && strcmp(words[1], "many") == 0) return many(words[2], words[3], atol(words[4]), words[5]);
    if (count == 6 && strcmp(words[1], "forge") == 0) return forge(words[2], words[3], atof(words[4]), words[5]);
    fprintf(stderr, "flood: echo PORT | forge ADDRESS PORT SECONDS FILE | flood ADDRESS PORT SECONDS FILE | many ADDRESS PORT COUNT FILE\n");
    return 2;
}
