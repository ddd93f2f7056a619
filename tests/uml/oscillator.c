/* A clock of its own under a guest of user-mode Linux: preloaded into the guest's kernel, which is a program and counts by
 * CLOCK_MONOTONIC of its host. So the guests' raw counters run at different rates, and one can be stepped, while no clock
 * of the host is touched.
 *
 * FFCLOCK_UML_OSCILLATOR is a file with one line, "STEPPED RATE STEP": 0 or 1, parts per billion, nanoseconds. Rate and
 * step are read once; the step counts as long as the first byte of the file is 1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static int (*next)(clockid_t, struct timespec *);
static volatile const char *file;
static int64_t origin, rate_ppb, step;

static int64_t nanoseconds(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }

/* A guest that was to have a clock of its own and has not must not run. */
__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FFCLOCK_UML_OSCILLATOR");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    long long rate, jump;
    struct timespec now;
    *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    if (fd < 0 || !next || next(CLOCK_MONOTONIC, &now)) _exit(126);
    file = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (file == MAP_FAILED || sscanf((const char *)file, "%*c %lld %lld", &rate, &jump) != 2) _exit(126);
    origin = nanoseconds(&now);
    rate_ppb = rate;
    step = jump;
}

int clock_gettime(clockid_t clock, struct timespec *to) {
    int result = next(clock, to);
    if (result || clock != CLOCK_MONOTONIC) return result;
    int64_t passed = nanoseconds(to) - origin;
    int64_t shown = origin + passed + (int64_t)((__int128)passed * rate_ppb / SECOND) + (*file == '1' ? step : 0);
    *to = (struct timespec){.tv_sec = shown / SECOND, .tv_nsec = shown % SECOND};
    return 0;
}
