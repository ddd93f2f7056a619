/* For the test of the interposer: does to its clock what the arguments say, and prints its raw counter and its clock
 * [ns] right before and right after. `host` prints the state of the discipline instead. `steps` and `reads` do so again
 * and again, as fast as they can. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/net_tstamp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Of many readings of both, the pair that was read in the shortest time. */
static void print_pair(void) {
    int64_t narrowest = INT64_MAX, raw = 0, shown = 0;
    for (int i = 0; i < 1000; i++) {
        int64_t before = read_clock(CLOCK_MONOTONIC_RAW), between = read_clock(CLOCK_REALTIME);
        int64_t width = read_clock(CLOCK_MONOTONIC_RAW) - before;
        if (width < narrowest) narrowest = width, raw = before, shown = between;
    }
    printf("%lld %lld\n", (long long)raw, (long long)shown);
}

/* Prints the stamp of a packet on loopback between two readings of the clock. */
static int stamp(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof to;
    int one = 1, fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(fd, (void *)&to, size) || getsockname(fd, (void *)&to, &size)) return 1;
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    printf("%lld\n", (long long)read_clock(CLOCK_REALTIME));
    sendto(fd, "x", 1, 0, (void *)&to, size);
    char data[8], control[256];
    struct iovec place = {data, sizeof data};
    struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(fd, &message, 0) != 1) return 1;
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (!c) return 1;
    struct timespec at;
    memcpy(&at, CMSG_DATA(c), sizeof at);
    printf("%lld\n%lld\n", at.tv_sec * 1000000000LL + at.tv_nsec, (long long)read_clock(CLOCK_REALTIME));
    return 0;
}

/* Receives a packet with room for four octets of its stamp, and prints how long the stamp says that it is, and how many
 * octets after that room were written. */
static int torn(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof to;
    int one = 1, written = 0, fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(fd, (void *)&to, size) || getsockname(fd, (void *)&to, &size)) return 1;
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    sendto(fd, "x", 1, 0, (void *)&to, size);
    char data[8];
    union { struct cmsghdr first; unsigned char octets[256]; } control;
    memset(&control, 1, sizeof control);
    size_t room = CMSG_LEN(4);
    struct iovec place = {data, sizeof data};
    struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = room};
    if (recvmsg(fd, &message, 0) != 1 || !(message.msg_flags & MSG_CTRUNC)) return 1;
    for (size_t i = room; i < sizeof control; i++) written += control.octets[i] != 1;
    printf("%zu\n%d\n", (size_t)control.first.cmsg_len, written);
    return 0;
}

/* Prints the stamp of a packet that was sent, which comes by the error queue, between two readings of the clock. */
static int sent(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int what = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE, fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &what, sizeof what)) return 1;
    printf("%lld\n", (long long)read_clock(CLOCK_REALTIME));
    sendto(fd, "x", 1, 0, (void *)&to, sizeof to);
    poll(&(struct pollfd){.fd = fd}, 1, 1000);
    char data[256], control[512];
    struct iovec place = {data, sizeof data};
    struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(fd, &message, MSG_ERRQUEUE) < 0) return 1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING) continue;
        struct timespec at;
        memcpy(&at, CMSG_DATA(c), sizeof at);
        printf("%lld\n", at.tv_sec * 1000000000LL + at.tv_nsec);
    }
    printf("%lld\n", (long long)read_clock(CLOCK_REALTIME));
    return 0;
}

/* Steps the clock by 1 ms each time, and prints how often it did not see its own step. */
static int steps(long count) {
    long missed = 0;
    for (long i = 0; i < count; i++) {
        struct timex x = {.modes = ADJ_SETOFFSET | ADJ_NANO, .time.tv_usec = 1000000};
        int64_t before = read_clock(CLOCK_REALTIME);
        if (adjtimex(&x) < 0) return 1;
        missed += read_clock(CLOCK_REALTIME) < before + 1000000;
    }
    printf("%ld\n", missed);
    return 0;
}

/* Asks for the state of the clock, which writes the coming seconds again. */
static int reads(long count) {
    for (long i = 0; i < count; i++) {
        struct timex x = {.modes = 0};
        if (adjtimex(&x) < 0) return 1;
    }
    return 0;
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    long value = count > 2 ? atol(words[2]) : 0;
    struct timex x = {.modes = 0};
    if (!strcmp(what, "host")) {
        int state = adjtimex(&x);
        printf("%d %ld %ld %ld %d %ld\n", state, x.offset, x.freq, x.tick, x.status, x.constant);
        return 0;
    }
    if (!strcmp(what, "stamp")) return stamp();
    if (!strcmp(what, "sent")) return sent();
    if (!strcmp(what, "torn")) return torn();
    if (!strcmp(what, "steps")) return steps(value);
    if (!strcmp(what, "reads")) return reads(value);
    long seconds = value / 1000000000 - (value % 1000000000 < 0);
    if (!strcmp(what, "frequency")) x = (struct timex){.modes = ADJ_FREQUENCY, .freq = value};
    if (!strcmp(what, "tick")) x = (struct timex){.modes = ADJ_TICK, .tick = value};
    if (!strcmp(what, "step")) {
        x = (struct timex){.modes = ADJ_SETOFFSET | ADJ_NANO};
        x.time.tv_sec = seconds, x.time.tv_usec = value - seconds * 1000000000;
    }
    if (!strcmp(what, "pll")) {
        x = (struct timex){.modes = ADJ_STATUS | ADJ_NANO | ADJ_TIMECONST | ADJ_OFFSET, .status = STA_PLL, .offset = value};
        x.constant = count > 3 ? atol(words[3]) : 0;
    }
    if (!strcmp(what, "status")) x = (struct timex){.modes = ADJ_STATUS, .status = (int)value};
    print_pair();
    int failed = x.modes && adjtimex(&x) < 0;
    struct timeval wanted = {.tv_sec = 0, .tv_usec = value};
    if (!strcmp(what, "adjtime")) failed = adjtime(&wanted, NULL) < 0;
    struct timespec set = {.tv_sec = value};
    if (!strcmp(what, "set")) failed = clock_settime(CLOCK_REALTIME, &set) < 0;
    print_pair();
    return failed;
}
