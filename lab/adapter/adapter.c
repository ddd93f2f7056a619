/* Lets ffclockd run in a network simulator that stands between a program and its C library, and watches its page there.
 *
 *   LD_PRELOAD="ffclock-adapter.so SIMULATOR.so" ffclockd ...
 *
 * Preloaded before the simulator, it takes the calls that such a tool does not answer as Linux would, and hands on all
 * others. Descriptors that the simulator made (its sockets) are the simulator's; any other (files, pipes, UNIX sockets,
 * timers) is the host's, and the calls on it go past the simulator to the C library. Waiting is cut into pieces that end
 * with each second of virtual time, where samples.c writes what a reader of the page would have read.
 *
 * It changes nothing that the daemon computes, and no clock: docs/simulators.md says what it stands in for. */
#define _GNU_SOURCE
#include "samples.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define DESCRIPTORS 4096
#define PORTS 4096               /* descriptors of one call of poll */
#define STAMPS 64                /* of packets sent that were not fetched, for each socket */
#define SETTLING_MS 200          /* clocks of a simulator may show more than the time at its very begin */
#define READING_NS 1             /* what a reading of a clock takes */
#define TX_FLAGS (SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_TX_SCHED \
                  | SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY)

/* A packet that was sent, and when. */
struct departure {
    uint32_t number;
    struct timespec at;
};

/* What is known of a descriptor. */
struct descriptor {
    int is_simulated;
    int stamps_sent;             /* whether packets sent are stamped */
    uint32_t next_number;
    unsigned first, count;       /* of the ring of departures */
    struct departure queue[STAMPS];
};

static struct descriptor *known[DESCRIPTORS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct clocks clocks;
/* How long the process has worked since it last waited: a simulator's processor takes no time, so that readings of a
 * clock before and after a packet would be the same. */
static int64_t worked_ns;
static void *c_library;

static void fail(const char *what) {
    fprintf(stderr, "ffclock-adapter: %s\n", what);
    _exit(126);
}

/* The function of the C library itself. */
static void *of_host(const char *name) {
    if (!c_library) c_library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *function = c_library ? dlsym(c_library, name) : NULL;
    if (!function) fail(name);
    return function;
}

/* That of whatever was preloaded behind this library. */
static void *of_simulator(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) fail(name);
    return function;
}

#define HOST(name) ({ static __typeof__(name) *function; if (!function) *(void **)&function = of_host(#name); function; })
#define SIMULATOR(name) \
    ({ static __typeof__(name) *function; if (!function) *(void **)&function = of_simulator(#name); function; })
/* The one of the two whose descriptor it is. */
#define OWNER(fd, name) (simulated(fd) ? SIMULATOR(name) : HOST(name))

static struct descriptor *simulated(int fd) {
    return fd >= 0 && fd < DESCRIPTORS && known[fd] && known[fd]->is_simulated ? known[fd] : NULL;
}

static int taken_over(int fd) {
    if (fd < 0) return fd;
    if (fd >= DESCRIPTORS) fail("the simulator's descriptors are too large");
    if (!known[fd]) known[fd] = malloc(sizeof *known[fd]);
    if (!known[fd]) fail("no memory");
    memset(known[fd], 0, sizeof *known[fd]);
    known[fd]->is_simulated = 1;
    return fd;
}

static int simulated_gettime(clockid_t clock, struct timespec *to) { return SIMULATOR(clock_gettime)(clock, to); }

/* A clock by its number, or the clock of a device by its path. */
static clockid_t clock_of(const char *name) {
    char *end;
    long number = strtol(name, &end, 0);
    if (*name && !*end) return (clockid_t)number;
    int fd = SIMULATOR(open)(name, O_RDONLY);
    if (fd < 0) fail("FFCLOCK_ADAPTER_TRUTH: the simulator has no such device");
    return (clockid_t)(((unsigned)~fd << 3) | 3); /* FD_TO_CLOCKID of clock_getres(2) */
}

__attribute__((constructor)) static void begin(void) {
    const char *truth = getenv("FFCLOCK_ADAPTER_TRUTH");
    clocks.simulated_gettime = simulated_gettime;
    clocks.host_call = (long (*)(long, ...))of_host("syscall");
    SIMULATOR(poll)(NULL, 0, SETTLING_MS);
    if (getenv("FFCLOCK_ADAPTER_OUTPUT") && !truth) fail("FFCLOCK_ADAPTER_OUTPUT needs FFCLOCK_ADAPTER_TRUTH");
    if (truth) clocks.truth = clock_of(truth);
    samples_begin(&clocks);
}

/* ---- clocks ---- */

int clock_gettime(clockid_t clock, struct timespec *to) {
    int result = simulated_gettime(clock, to);
    if (result < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID) return result;
    int64_t worked = __atomic_add_fetch(&worked_ns, READING_NS, __ATOMIC_RELAXED);
    int64_t ns = to->tv_nsec + worked;
    to->tv_sec += ns / SECOND, to->tv_nsec = ns % SECOND;
    return result;
}

/* ---- waiting ---- */

/* Asks the host's descriptors, and the queues that are kept here: how many are ready. */
static int ready_here(struct pollfd *fds, nfds_t count) {
    struct pollfd own[PORTS];
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        own[i] = fds[i];
        if (simulated(fds[i].fd)) own[i].fd = -1;
    }
    if (HOST(ppoll)(own, count, &(struct timespec){0, 0}, NULL) < 0) return -1;
    for (nfds_t i = 0; i < count; i++) {
        const struct descriptor *of = simulated(fds[i].fd);
        fds[i].revents = of ? (of->count ? POLLERR : 0) : own[i].revents;
        ready += fds[i].revents != 0;
    }
    return ready;
}

/* Lets virtual time pass until one of the simulated descriptors is ready, for this long at most. */
static int wait_simulated(struct pollfd *fds, nfds_t count, int milliseconds) {
    struct pollfd theirs[PORTS];
    nfds_t some = 0, next = 0;
    for (nfds_t i = 0; i < count; i++) if (simulated(fds[i].fd)) theirs[some] = fds[i], theirs[some++].revents = 0;
    if (some == 0 && milliseconds == 0) return 0;
    __atomic_store_n(&worked_ns, 0, __ATOMIC_RELAXED);
    int ready = SIMULATOR(poll)(theirs, some, milliseconds);
    if (ready < 0) return -1;
    for (nfds_t i = 0; i < count; i++) if (simulated(fds[i].fd)) fds[i].revents |= theirs[next++].revents;
    return ready;
}

static int64_t monotonic_ns(void) {
    struct timespec now;
    simulated_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

int poll(struct pollfd *fds, nfds_t count, int timeout) {
    if (count > PORTS) return errno = EINVAL, -1;
    int64_t end = timeout < 0 ? INT64_MAX : monotonic_ns() + timeout * 1000000LL;
    for (;;) {
        if (samples_due_ms() == 0) samples_take();
        int ready = ready_here(fds, count);
        if (ready != 0) return ready;
        int64_t left = end == INT64_MAX ? INT_MAX : (end - monotonic_ns() + 999999) / 1000000;
        int32_t due = samples_due_ms();
        if (left < 0) left = 0;
        int piece = (int)(left < due ? left : due);
        /* A second at most also where no line is wanted: requests to the control socket come in real time. */
        ready = wait_simulated(fds, count, piece < 1000 ? piece : 1000);
        if (ready != 0) return ready;
        if (monotonic_ns() >= end) {
            if (samples_due_ms() == 0) samples_take();
            return 0;
        }
    }
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    int64_t wanted = timeout ? timeout->tv_sec * 1000LL + (timeout->tv_nsec + 999999) / 1000000 : -1;
    sigset_t earlier;
    if (mask) pthread_sigmask(SIG_SETMASK, mask, &earlier);
    int ready = poll(fds, count, wanted > INT_MAX ? INT_MAX : (int)wanted);
    int error = errno;
    if (mask) pthread_sigmask(SIG_SETMASK, &earlier, NULL);
    errno = error;
    return ready;
}

/* ---- descriptors ---- */

int timerfd_create(int clock, int flags) { return HOST(timerfd_create)(clock, flags); }

int timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *old) {
    return HOST(timerfd_settime)(fd, flags, to, old);
}

int timerfd_gettime(int fd, struct itimerspec *to) { return HOST(timerfd_gettime)(fd, to); }

int socket(int domain, int type, int protocol) {
    if (domain != AF_INET) return HOST(socket)(domain, type, protocol);
    pthread_mutex_lock(&lock);
    int fd = taken_over(SIMULATOR(socket)(domain, type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK), protocol));
    pthread_mutex_unlock(&lock);
    return fd;
}

int close(int fd) {
    if (!simulated(fd)) return HOST(close)(fd);
    known[fd]->is_simulated = 0;
    return SIMULATOR(close)(fd);
}

int fcntl(int fd, int command, ...) {
    va_list words;
    va_start(words, command);
    void *word = va_arg(words, void *);
    va_end(words);
    return OWNER(fd, fcntl)(fd, command, word);
}

int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));

int ioctl(int fd, unsigned long request, ...) {
    va_list words;
    va_start(words, request);
    void *word = va_arg(words, void *);
    va_end(words);
    /* A simulated socket never blocks: nothing happens while the process does not wait. */
    if (simulated(fd) && request == FIONBIO) return 0;
    return OWNER(fd, ioctl)(fd, request, word);
}

int bind(int fd, const struct sockaddr *to, socklen_t length) { return OWNER(fd, bind)(fd, to, length); }

int connect(int fd, const struct sockaddr *to, socklen_t length) { return OWNER(fd, connect)(fd, to, length); }

int listen(int fd, int waiting) { return OWNER(fd, listen)(fd, waiting); }

int accept4(int fd, struct sockaddr *from, socklen_t *length, int flags) {
    if (!simulated(fd)) return HOST(accept4)(fd, from, length, flags);
    return taken_over(SIMULATOR(accept)(fd, from, length));
}

int accept(int fd, struct sockaddr *from, socklen_t *length) { return accept4(fd, from, length, 0); }

int shutdown(int fd, int how) { return OWNER(fd, shutdown)(fd, how); }

int getsockname(int fd, struct sockaddr *to, socklen_t *length) { return OWNER(fd, getsockname)(fd, to, length); }

int getsockopt(int fd, int level, int name, void *to, socklen_t *length) {
    return OWNER(fd, getsockopt)(fd, level, name, to, length);
}

/* Who wants stamps of packets sent gets them here: the simulator knows of the others only. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t length) {
    struct descriptor *of = simulated(fd);
    int flags;
    if (!of || level != SOL_SOCKET || name != SO_TIMESTAMPING || length < sizeof flags)
        return OWNER(fd, setsockopt)(fd, level, name, value, length);
    memcpy(&flags, value, sizeof flags);
    /* Without numbers before and with them now: the count begins again (net/core/sock.c). */
    if (!(flags & SOF_TIMESTAMPING_OPT_ID)) of->next_number = 0;
    of->stamps_sent = flags & SOF_TIMESTAMPING_TX_SOFTWARE && flags & SOF_TIMESTAMPING_OPT_ID;
    flags &= ~TX_FLAGS;
    return SIMULATOR(setsockopt)(fd, level, name, &flags, sizeof flags);
}

/* ---- packets ---- */

static void note_departure(struct descriptor *of) {
    if (of->count == STAMPS) of->first = (of->first + 1) % STAMPS, of->count--;
    struct departure *last = &of->queue[(of->first + of->count++) % STAMPS];
    last->number = of->next_number++;
    clock_gettime(CLOCK_REALTIME, &last->at);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    struct descriptor *of = simulated(fd);
    ssize_t sent = OWNER(fd, sendmsg)(fd, message, flags);
    if (sent >= 0 && of && of->stamps_sent) note_departure(of);
    return sent;
}

ssize_t sendto(int fd, const void *from, size_t length, int flags, const struct sockaddr *to, socklen_t to_length) {
    if (!simulated(fd)) return HOST(sendto)(fd, from, length, flags, to, to_length);
    struct iovec part = {(void *)from, length};
    struct msghdr message = {.msg_name = (void *)to, .msg_namelen = to_length, .msg_iov = &part, .msg_iovlen = 1};
    return sendmsg(fd, &message, flags);
}

ssize_t send(int fd, const void *from, size_t length, int flags) { return sendto(fd, from, length, flags, NULL, 0); }


/* The oldest entry of the error queue, as the kernel writes one with SOF_TIMESTAMPING_OPT_TSONLY. */
static ssize_t fetch_departure(struct descriptor *of, struct msghdr *message) {
    struct scm_timestamping stamps = {.ts = {{0, 0}}};
    struct { struct sock_extended_err error; struct sockaddr_in offender; } report = {.error = {0}};
    size_t room = CMSG_SPACE(sizeof stamps) + CMSG_SPACE(sizeof report);
    if (of->count == 0) return errno = EAGAIN, -1;
    if (!message->msg_control || message->msg_controllen < room) return errno = EMSGSIZE, -1;
    const struct departure *oldest = &of->queue[of->first];
    of->first = (of->first + 1) % STAMPS, of->count--;
    stamps.ts[0] = oldest->at;
    report.error.ee_errno = ENOMSG;
    report.error.ee_origin = SO_EE_ORIGIN_TIMESTAMPING;
    report.error.ee_info = SCM_TSTAMP_SND;
    report.error.ee_data = oldest->number;
    memset(message->msg_control, 0, room);
    struct cmsghdr *first = message->msg_control;
    *first = (struct cmsghdr){CMSG_LEN(sizeof stamps), SOL_SOCKET, SCM_TIMESTAMPING};
    memcpy(CMSG_DATA(first), &stamps, sizeof stamps);
    struct cmsghdr *second = (struct cmsghdr *)((char *)first + CMSG_SPACE(sizeof stamps));
    *second = (struct cmsghdr){CMSG_LEN(sizeof report), IPPROTO_IP, IP_RECVERR};
    memcpy(CMSG_DATA(second), &report, sizeof report);
    message->msg_controllen = room, message->msg_flags = MSG_ERRQUEUE, message->msg_namelen = 0;
    return 0;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    struct descriptor *of = simulated(fd);
    if (of && flags & MSG_ERRQUEUE) return fetch_departure(of, message);
    return OWNER(fd, recvmsg)(fd, message, flags);
}

ssize_t recvfrom(int fd, void *to, size_t length, int flags, struct sockaddr *from, socklen_t *from_length) {
    return OWNER(fd, recvfrom)(fd, to, length, flags, from, from_length);
}

ssize_t recv(int fd, void *to, size_t length, int flags) { return OWNER(fd, recv)(fd, to, length, flags); }
