/* A network simulator for the test of the adapter (lab/adapter), with the gaps that tools of this kind have.
 *
 * Preloaded, it stands between a program and its C library. Time is virtual: it passes only while the program waits,
 * and the processor takes none of it. There is one server of NTP, which has the truth, at 192.168.123.1, behind a path
 * of 100 us and a random part of 15 us on average each way, that loses one packet in fifty. The raw counter is 12 ppm
 * slow and moves by 0.2 ppm in an hour; the system clock is 0.35 s wrong. /dev/ptp0 is a clock that shows the truth.
 *
 * A gap is closed where SIMULATOR_CLOSED names it. After SIMULATOR_SECONDS of virtual time the program gets
 * SIGTERM. The random numbers are the same in each run. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define FIRST 100                /* of the descriptors of sockets */
#define SOCKETS 20
#define REFERENCE 1000           /* the descriptor of /dev/ptp0 */
#define REFERENCE_CLOCK ((clockid_t)(((unsigned)~REFERENCE << 3) | 3))
#define EPOCH 1262304000LL       /* the truth at the begin: 2010-01-01 */
#define FROM_NTP 2208988800LL
#define PACKETS 64

struct packet {
    int64_t due;                 /* at the program */
    int socket;
    uint8_t octets[48];
};

struct simulated {
    int is_used, stamping;
    int has_stamp;               /* of a packet sent, until it is fetched */
    uint32_t sent;
};

static struct simulated sockets[SOCKETS];
static struct packet packets[PACKETS];
static int waiting;
static int64_t now, end_ns;      /* since the begin */
static int is_early = 1, readings;
static uint64_t noise = 0x9e3779b97f4a7c15ULL;

static int is_closed(const char *gap) {
    const char *all = getenv("SIMULATOR_CLOSED");
    return all && strstr(all, gap) != NULL;
}

#define NEXT(name) ({ static __typeof__(name) *next; if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name); next; })

__attribute__((constructor)) static void begin(void) {
    const char *seconds = getenv("SIMULATOR_SECONDS");
    end_ns = (seconds ? atoll(seconds) : 3600) * SECOND;
}

static double uniform(void) {
    noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
    return (double)(noise >> 11) * 0x1p-53;
}

static int64_t one_way(void) { return 100000 - (int64_t)(15000 * log(1 - uniform())); }

static int64_t raw_ns(void) {
    double wave = 0.2e-6 * 3600 / (2 * M_PI) * sin(2 * M_PI * (double)now / (3600.0 * SECOND));
    return 5000 * SECOND + now + (int64_t)(-12e-6 * (double)now + wave * SECOND);
}

static int64_t real_ns(void) { return EPOCH * SECOND + now + 350000000 - (int64_t)(13e-6 * (double)now); }

static struct simulated *of(int fd) {
    return fd >= FIRST && fd < FIRST + SOCKETS && sockets[fd - FIRST].is_used ? &sockets[fd - FIRST] : NULL;
}

static int refuse(int error) { return errno = error, -1; }

int clock_gettime(clockid_t clock, struct timespec *to) {
    int64_t shown = now;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) shown = real_ns();
    else if (clock == CLOCK_MONOTONIC_RAW) shown = raw_ns();
    else if (clock == REFERENCE_CLOCK) shown = EPOCH * SECOND + now;
    else if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE && clock != CLOCK_BOOTTIME)
        return NEXT(clock_gettime)(clock, to);
    /* For programs that measure how fine the clock is: at the begin it runs ahead. */
    if (is_early && !is_closed("begin")) shown += 101LL * readings++;
    to->tv_sec = shown / SECOND, to->tv_nsec = shown % SECOND;
    return 0;
}

int open(const char *path, int flags, ...) {
    va_list words;
    va_start(words, flags);
    mode_t mode = va_arg(words, mode_t);
    va_end(words);
    return strcmp(path, "/dev/ptp0") == 0 ? REFERENCE : NEXT(open)(path, flags, mode);
}

int timerfd_create(int clock, int flags) {
    if (is_closed("timer")) return NEXT(timerfd_create)(clock, flags);
    if (!flags) return refuse(ENOMEM);
    fprintf(stderr, "simulator: timerfd_create with flags\n");
    abort();
}

int socket(int domain, int type, int protocol) {
    int plain = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (domain == AF_UNIX && is_closed("unix")) return NEXT(socket)(domain, type, protocol);
    if (domain != AF_INET || plain != SOCK_DGRAM || (type != plain && !is_closed("flags"))) return refuse(EINVAL);
    for (int i = 0; i < SOCKETS; i++) {
        if (sockets[i].is_used) continue;
        sockets[i] = (struct simulated){.is_used = 1};
        return FIRST + i;
    }
    return refuse(EMFILE);
}

int close(int fd) {
    if (fd == REFERENCE) return 0;
    if (!of(fd)) return NEXT(close)(fd);
    of(fd)->is_used = 0;
    return 0;
}

int fcntl(int fd, int command, ...) {
    va_list words;
    va_start(words, command);
    void *word = va_arg(words, void *);
    va_end(words);
    int is_known = command == F_DUPFD || command == F_GETFL || command == F_SETFL || is_closed("fcntl");
    return of(fd) || !is_known ? 0 : NEXT(fcntl)(fd, command, word);
}

int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));

int ioctl(int fd, unsigned long request, ...) {
    va_list words;
    va_start(words, request);
    void *word = va_arg(words, void *);
    va_end(words);
    if (request == FIONBIO && is_closed("ioctl")) return of(fd) ? 0 : NEXT(ioctl)(fd, request, word);
    return refuse(EINVAL);
}

/* Only sockets of its own are known, where that gap is open. */
#define SIMULATED_OR(fd, call) if (!of(fd)) return is_closed("unix") ? call : refuse(EINVAL)

int bind(int fd, const struct sockaddr *to, socklen_t length) {
    SIMULATED_OR(fd, NEXT(bind)(fd, to, length));
    return 0;
}

int connect(int fd, const struct sockaddr *to, socklen_t length) {
    SIMULATED_OR(fd, NEXT(connect)(fd, to, length));
    return 0;
}

int listen(int fd, int most) {
    SIMULATED_OR(fd, NEXT(listen)(fd, most));
    return refuse(EINVAL);
}

int getsockname(int fd, struct sockaddr *to, socklen_t *length) {
    SIMULATED_OR(fd, NEXT(getsockname)(fd, to, length));
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(60000 + fd - FIRST))};
    inet_pton(AF_INET, "192.168.123.2", &own.sin_addr);
    memcpy(to, &own, *length < sizeof own ? *length : sizeof own);
    *length = sizeof own;
    return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length) {
    SIMULATED_OR(fd, NEXT(setsockopt)(fd, level, name, value, length));
    if (level == SOL_SOCKET && name == SO_TIMESTAMPING) memcpy(&of(fd)->stamping, value, sizeof(int));
    return 0;
}

int getsockopt(int fd, int level, int name, void *to, socklen_t *length) {
    SIMULATED_OR(fd, NEXT(getsockopt)(fd, level, name, to, length));
    return refuse(EINVAL);
}

static void put_time(uint8_t *to, int64_t ns) {
    uint32_t seconds = htonl((uint32_t)(ns / SECOND + EPOCH + FROM_NTP));
    uint32_t fraction = htonl((uint32_t)(((uint64_t)(ns % SECOND) << 32) / SECOND));
    memcpy(to, &seconds, 4), memcpy(to + 4, &fraction, 4);
}

/* The server's answer is on its way at once, as nothing else happens to it. */
static void answer(int fd, const uint8_t *request) {
    int64_t there = now + one_way(), left = there + 20000, back = left + one_way();
    if (uniform() < 0.02 || waiting == PACKETS) return;
    struct packet *reply = &packets[waiting++];
    *reply = (struct packet){.due = back, .socket = fd};
    uint8_t *octets = reply->octets;
    octets[0] = 4 << 3 | 4, octets[1] = 1, octets[2] = request[2], octets[3] = (uint8_t)-25;
    memcpy(octets + 12, "SIM", 4);
    put_time(octets + 16, there - there % SECOND);
    memcpy(octets + 24, request + 40, 8);
    put_time(octets + 32, there);
    put_time(octets + 40, left);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    struct simulated *socket = of(fd);
    if (!socket) return is_closed("unix") ? NEXT(sendmsg)(fd, message, flags) : refuse(EINVAL);
    size_t length = message->msg_iov[0].iov_len;
    if (length >= 48) answer(fd, message->msg_iov[0].iov_base);
    socket->sent++;
    socket->has_stamp = (socket->stamping & SOF_TIMESTAMPING_TX_SOFTWARE) != 0;
    return (ssize_t)length;
}

/* The first packet that has come to a socket; -1 where there is none. */
static int come(int fd) {
    int first = -1;
    for (int i = 0; i < waiting; i++)
        if (packets[i].socket == fd && packets[i].due <= now && (first < 0 || packets[i].due < packets[first].due)) first = i;
    return first;
}

static void stamp(struct msghdr *message) {
    struct timespec shown[3] = {{0, 0}};
    struct cmsghdr *at = message->msg_control;
    shown[0].tv_sec = real_ns() / SECOND, shown[0].tv_nsec = real_ns() % SECOND;
    memset(at, 0, CMSG_SPACE(sizeof shown));
    *at = (struct cmsghdr){CMSG_LEN(sizeof shown), SOL_SOCKET, SCM_TIMESTAMPING};
    memcpy(CMSG_DATA(at), shown, sizeof shown);
    message->msg_controllen = CMSG_SPACE(sizeof shown);
}

/* A stamp of a packet sent has the time at which it is fetched, and a number that begins at 1. */
static ssize_t fetch_stamp(struct simulated *socket, struct msghdr *message) {
    struct { struct sock_extended_err error; struct sockaddr_in offender; } report = {.error = {0}};
    socket->has_stamp = 0;
    stamp(message);
    struct cmsghdr *second = (struct cmsghdr *)((char *)message->msg_control + message->msg_controllen);
    report.error = (struct sock_extended_err){.ee_errno = ENOMSG, .ee_origin = SO_EE_ORIGIN_TIMESTAMPING, .ee_data = socket->sent};
    *second = (struct cmsghdr){CMSG_LEN(sizeof report), IPPROTO_IP, IP_RECVERR};
    memcpy(CMSG_DATA(second), &report, sizeof report);
    message->msg_controllen += CMSG_SPACE(sizeof report), message->msg_flags = MSG_ERRQUEUE;
    return 0;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    struct simulated *socket = of(fd);
    if (!socket) return is_closed("unix") ? NEXT(recvmsg)(fd, message, flags) : refuse(EINVAL);
    if (flags & MSG_ERRQUEUE && socket->has_stamp) return fetch_stamp(socket, message);
    if (flags & MSG_ERRQUEUE && is_closed("queue")) return refuse(EAGAIN);
    /* Without one, the error queue gives a packet that was not asked for there. */
    int which = come(fd);
    if (which < 0) return refuse(EAGAIN);
    size_t room = message->msg_iov[0].iov_len, length = room < 48 ? room : 48;
    memcpy(message->msg_iov[0].iov_base, packets[which].octets, length);
    packets[which] = packets[--waiting];
    message->msg_controllen = message->msg_control ? message->msg_controllen : 0, message->msg_flags = 0;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(123)};
    inet_pton(AF_INET, "192.168.123.1", &from.sin_addr);
    if (message->msg_name) memcpy(message->msg_name, &from, sizeof from), message->msg_namelen = sizeof from;
    if (message->msg_control && socket->stamping & SOF_TIMESTAMPING_RX_SOFTWARE) stamp(message);
    else message->msg_controllen = 0;
    return (ssize_t)length;
}

/* Whether a descriptor is ready: one that is not known always is. */
static int is_ready(const struct pollfd *asked) {
    if (asked->fd < 0 || !(asked->events & POLLIN)) return 0;
    if (of(asked->fd)) return come(asked->fd) >= 0;
    if (!is_closed("poll")) return 1;
    struct pollfd one = {asked->fd, asked->events, 0};
    return NEXT(ppoll)(&one, 1, &(struct timespec){0, 0}, NULL) > 0;
}

int poll(struct pollfd *fds, nfds_t count, int timeout) {
    int64_t until = timeout < 0 ? INT64_MAX : now + timeout * 1000000LL;
    for (;;) {
        int ready = 0;
        for (nfds_t i = 0; i < count; i++) ready += (fds[i].revents = is_ready(&fds[i]) ? POLLIN : 0) != 0;
        if (ready) return ready;
        if (now >= until) return 0;
        if (now >= end_ns) {
            end_ns = INT64_MAX;
            kill(getpid(), SIGTERM);
            return refuse(EINTR);
        }
        int64_t next = until < end_ns ? until : end_ns;
        for (int i = 0; i < waiting; i++) if (packets[i].due > now && packets[i].due < next) next = packets[i].due;
        now = next;
        if (now >= SECOND / 10) is_early = 0;
    }
}
