/* Stands between a program and its C library, as network simulators and fault injectors do. The test sets the clocks
 * that the program sees, and some calls are refused. Commands and counts are in a file of 64-bit words, named by
 * FFCLOCK_INTERPOSE, that the test and this library share; tests/common/interpose.rs has the same indices. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum place {
    RATE_PPB,     /* how much faster all clocks run from ORIGIN on */
    ORIGIN_NS,    /* CLOCK_MONOTONIC_RAW of the host when that began */
    RAW_NS,       /* added to CLOCK_MONOTONIC_RAW */
    MONOTONIC_NS, /* added to CLOCK_MONOTONIC */
    BOOTTIME_NS,  /* added to CLOCK_BOOTTIME */
    REALTIME_NS,  /* added to CLOCK_REALTIME */
    REFUSED,      /* bits of enum refusal */
    RAW_READS,    /* how often each clock was read */
    MONOTONIC_READS,
    BOOTTIME_READS,
    REALTIME_READS,
    PLACES = 512
};

enum refusal { REFUSE_BOOTTIME = 1, REFUSE_TIMERFD = 2, REFUSE_STAMPS = 4 };

static volatile int64_t none[PLACES];
static volatile int64_t *words;

static volatile int64_t *shared(void) {
    if (words == NULL) {
        const char *name = getenv("FFCLOCK_INTERPOSE");
        int file = name == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC);
        void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (file >= 0) syscall(SYS_close, file);
        words = memory == MAP_FAILED ? none : memory;
    }
    return words;
}

static int64_t host_ns(clockid_t clock) {
    struct timespec now = {0, 0};
    syscall(SYS_clock_gettime, clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    volatile int64_t *shared_words = shared();
    int64_t added = 0;
    enum place reads;
    switch (clock) {
    case CLOCK_MONOTONIC_RAW: added = shared_words[RAW_NS], reads = RAW_READS; break;
    case CLOCK_MONOTONIC: added = shared_words[MONOTONIC_NS], reads = MONOTONIC_READS; break;
    case CLOCK_BOOTTIME: added = shared_words[BOOTTIME_NS], reads = BOOTTIME_READS; break;
    case CLOCK_REALTIME: added = shared_words[REALTIME_NS], reads = REALTIME_READS; break;
    default: errno = EINVAL; return -1;
    }
    shared_words[reads] += 1;
    if (clock == CLOCK_BOOTTIME && (shared_words[REFUSED] & REFUSE_BOOTTIME)) {
        errno = EINVAL;
        return -1;
    }
    int64_t shown_ns = host_ns(clock) + added;
    if (shared_words[RATE_PPB] != 0) {
        __int128 passed = host_ns(CLOCK_MONOTONIC_RAW) - shared_words[ORIGIN_NS];
        shown_ns += (int64_t)(passed * shared_words[RATE_PPB] / 1000000000);
    }
    now->tv_sec = shown_ns / 1000000000;
    now->tv_nsec = shown_ns % 1000000000;
    return 0;
}

int timerfd_create(int clock, int flags) {
    if (shared()[REFUSED] & REFUSE_TIMERFD) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_timerfd_create, clock, flags);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length) {
    if (level == SOL_SOCKET && name == SO_TIMESTAMPING && (shared()[REFUSED] & REFUSE_STAMPS)) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return (int)syscall(SYS_setsockopt, fd, level, name, value, length);
}
