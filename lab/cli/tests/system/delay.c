/* Stands between a program and its C library and makes every packet wait before it is sent: a host that is slow in one direction. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    const char *delay = getenv("FFCLOCK_SEND_DELAY_NS");
    int64_t end = now_ns() + (delay == NULL ? 0 : strtoll(delay, NULL, 10));
    while (now_ns() < end) {
    }
    return syscall(SYS_sendmsg, fd, message, flags);
}
