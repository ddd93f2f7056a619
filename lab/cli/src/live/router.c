/* Stands between two devices of each link and lets every frame wait: what netem does where the kernel has it.
 *
 *   router DELAYS LINKS        links 0 to LINKS - 1, whose devices are sN (the server's side) and cN (the other)
 *
 * The file of delays (path_file.rs) has for each slot of time and each direction how long a frame waits that came in
 * it, or that it is lost. The waiting begins with the kernel's stamp of the frame's arrival, so that how late this
 * program was woken does not count as long as it is less than the delay; its end is waited for in a loop. A frame goes
 * on as it came, its unfinished checksum included (PACKET_VNET_HDR). A device that goes, as with a contestant that ends,
 * is left out from then on. At the end (SIGTERM) it prints how many frames passed and how late they left. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define MAGIC 0x31504556494c4646ULL /* "FFLIVEP1" */
#define LINKS 64
#define FRAME 2048
#define WAITING 1024
#define LOST UINT32_MAX
#define EARLY 80000              /* ns before a frame is due at which the loop begins */
#define BINS 32

struct delays {
    uint64_t magic;
    int64_t origin;              /* ns of the host's clock at the first slot */
    int64_t slot;                /* ns */
    int64_t slots;
    uint32_t delay[][2];         /* ns, to the server and from it */
};

struct frame {
    int64_t due;
    int to;
    size_t length;
    uint8_t octets[FRAME];
};

static const struct delays *delays;
static struct frame waiting[WAITING];
static int waits, count;
static struct pollfd ends[2 * LINKS];
static uint64_t passed, lost, too_long, refused, late[BINS];
static int64_t latest;
static volatile sig_atomic_t is_over;

static void end(int signal) { (void)signal, is_over = 1; }

static int64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    return at.tv_sec * SECOND + at.tv_nsec;
}

static int fail(const char *what) {
    perror(what);
    return 1;
}

static int load(const char *path) {
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) < 0 || about.st_size < (off_t)sizeof *delays) return -1;
    delays = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (delays == MAP_FAILED) return -1;
    int64_t room = (about.st_size - (off_t)sizeof *delays) / (off_t)sizeof delays->delay[0];
    errno = EINVAL;
    return delays->magic == MAGIC && delays->slot > 0 && delays->slots > 0 && delays->slots <= room ? 0 : -1;
}

/* A frame that came at `at`; the last slot goes on beyond the file. */
static uint32_t delay_at(int64_t at, int from_server) {
    int64_t slot = (at - delays->origin) / delays->slot;
    if (slot < 0) slot = 0;
    if (slot > delays->slots - 1) slot = delays->slots - 1;
    return delays->delay[slot][from_server];
}

static int attach(const char *side, int link) {
    char name[IF_NAMESIZE];
    snprintf(name, sizeof name, "%s%d", side, link);
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    at.sll_ifindex = (int)if_nametoindex(name);
    if (!at.sll_ifindex) return 0; /* a contestant that was left out */
    int one = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one) < 0
        || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) < 0
        || setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one) < 0
        || bind(fd, (void *)&at, sizeof at) < 0)
        return -1;
    return fd;
}

/* Whether a socket still has its device: the kernel takes the number away where the device goes. */
static int has_device(int fd) {
    struct sockaddr_ll at = {.sll_ifindex = 0};
    socklen_t size = sizeof at;
    return getsockname(fd, (void *)&at, &size) == 0 && at.sll_ifindex > 0;
}

/* An error of a device that is only down is gone by now. One whose device is gone is watched no more. */
static void take_error(int from) {
    if (errno == EAGAIN || errno == EINTR || has_device(ends[from].fd)) return;
    close(ends[from].fd);
    ends[from].fd = -1;
}

/* Takes one frame; 0 where there is none. */
static int take(int from) {
    struct frame *frame = &waiting[waits];
    char control[256];
    struct iovec place = {frame->octets, FRAME};
    struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t length = recvmsg(ends[from].fd, &message, MSG_DONTWAIT);
    if (length < 0) return take_error(from), 0;
    if (message.msg_flags & MSG_TRUNC) return too_long++, 1;
    int64_t at = now();
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS) continue;
        struct timespec stamp;
        memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
        at = stamp.tv_sec * SECOND + stamp.tv_nsec;
    }
    uint32_t delay = delay_at(at, from % 2 == 0);
    if (delay == LOST) return lost++, 1;
    frame->due = at + delay, frame->to = from ^ 1, frame->length = (size_t)length;
    waits++;
    return 1;
}

static int next_due(void) {
    int first = 0;
    for (int i = 1; i < waits; i++) if (waiting[i].due < waiting[first].due) first = i;
    return first;
}

static void pass(int which) {
    struct frame *frame = &waiting[which];
    int64_t lateness;
    while ((lateness = now() - frame->due) < 0) { }
    ssize_t sent = send(ends[frame->to].fd, frame->octets, frame->length, MSG_DONTWAIT);
    int64_t rest = lateness;
    int bin = 0;
    while (rest > 0 && bin < BINS - 1) rest >>= 1, bin++;
    late[bin]++;
    if (lateness > latest) latest = lateness;
    if (sent < 0) refused++; else passed++;
    *frame = waiting[--waits];
}

/* The least power of two of ns that this share of the frames was not later than [us]. */
static double within(double share) {
    uint64_t all = 0, sum = 0;
    for (int i = 0; i < BINS; i++) all += late[i];
    for (int i = 0; i < BINS; i++) if ((double)(sum += late[i]) >= share * (double)all) return (double)(1LL << i) * 1e-3;
    return 0;
}

int main(int words, char **word) {
    if (words != 3) return fprintf(stderr, "router DELAYS LINKS\n"), 2;
    int links = atoi(word[2]);
    if (load(word[1]) < 0) return fail(word[1]);
    if (links < 1 || links > LINKS) return fprintf(stderr, "1 to %d links\n", LINKS), 2;
    struct sigaction over = {.sa_handler = end};
    sigaction(SIGTERM, &over, NULL);
    for (int link = 0; link < links; link++) {
        int server = attach("s", link), other = attach("c", link);
        if (server < 0 || other < 0) return fail("a device");
        if (!server || !other) continue;
        ends[count++] = (struct pollfd){.fd = server, .events = POLLIN};
        ends[count++] = (struct pollfd){.fd = other, .events = POLLIN};
    }
    while (!is_over) {
        int64_t left = waits ? waiting[next_due()].due - now() : SECOND;
        if (waits && left <= EARLY) {
            pass(next_due());
            continue;
        }
        if (waits) left -= EARLY;
        struct timespec until = {left / SECOND, left % SECOND};
        if (ppoll(ends, (nfds_t)count, waits < WAITING ? &until : &(struct timespec){0, 0}, NULL) <= 0) continue;
        /* An error that is left there would end each wait at once. */
        for (int i = 0; i < count; i++)
            while (ends[i].revents & (POLLIN | POLLERR | POLLHUP) && waits < WAITING && take(i)) { }
    }
    printf("%llu frames passed, %llu lost by the plan, %llu refused, %llu longer than %d octets; half left within %.2f us "
           "after they were due, 99 %% within %.2f us, the latest %.2f us\n", (unsigned long long)passed,
           (unsigned long long)lost, (unsigned long long)refused, (unsigned long long)too_long, FRAME, within(0.5),
           within(0.99), (double)latest * 1e-3);
    return 0;
}
