#define _GNU_SOURCE
#include "samples.h"

#include <fcntl.h>
#include <ffclock_page.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define ATTEMPTS 256
#define UNSYNCHRONISED 1

static const struct clocks *clocks;
static int output = -1;
static const uint64_t *page;
static int64_t next_second; /* of the truth [s] */

static int64_t nanoseconds(clockid_t clock) {
    struct timespec now = {0, 0};
    clocks->simulated_gettime(clock, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

static void write_line(const char *text, size_t length) {
    if (clocks->host_call(SYS_write, output, text, length) == (long)length) return;
    /* A run whose lines are lost must not look like a whole one. */
    perror("ffclock-adapter: FFCLOCK_ADAPTER_OUTPUT");
    _exit(126);
}

void samples_begin(const struct clocks *given) {
    static const char heading[] = "truth_ns,raw_ns,status,utc_ns,bound_ns,uncertainty_ns,error_ns\n";
    const char *path = getenv("FFCLOCK_ADAPTER_OUTPUT");
    clocks = given;
    if (!path) return;
    output = (int)clocks->host_call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    write_line(heading, sizeof heading - 1);
    next_second = nanoseconds(clocks->truth) / SECOND + 1;
}

int32_t samples_due_ms(void) {
    if (output < 0) return INT32_MAX;
    int64_t left = next_second * SECOND - nanoseconds(clocks->truth);
    return left <= 0 ? 0 : (int32_t)((left + 999999) / 1000000);
}

static uint64_t word(const uint64_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }

/* Maps the page once it is there: docs/page.md, "Reading", "Once". The daemon that wrote it is this process, so that its
 * boot is this one. */
static void map_page(void) {
    const char *path = getenv("FFCLOCK_ADAPTER_PAGE");
    struct stat about;
    int fd = path ? (int)clocks->host_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    if (clocks->host_call(SYS_fstat, fd, &about) == 0 && about.st_size >= FFCLOCK_PAGE_BYTES) {
        const uint64_t *at = mmap(NULL, FFCLOCK_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
        uint64_t check = FFCLOCK_PAGE_CHECK_SEED;
        for (int i = 0; at != MAP_FAILED && i < FFCLOCK_PAGE_HEADER_CHECK; i++) check += word(&at[i]);
        if (at == MAP_FAILED) at = NULL;
        else if (word(&at[FFCLOCK_PAGE_HEADER_MAGIC]) == FFCLOCK_PAGE_MAGIC
                 && word(&at[FFCLOCK_PAGE_HEADER_VERSION]) == FFCLOCK_PAGE_VERSION
                 && word(&at[FFCLOCK_PAGE_HEADER_CHECK]) == check) page = at;
        else munmap((void *)at, FFCLOCK_PAGE_BYTES);
    }
    clocks->host_call(SYS_close, fd);
}

/* The slot of the latest publication; 0 where there is none, or it is damaged. */
static int read_slot(uint64_t slot[FFCLOCK_PAGE_SLOT_WORDS]) {
    for (int i = 0; i < ATTEMPTS; i++) {
        uint64_t latest = __atomic_load_n(&page[FFCLOCK_PAGE_HEADER_LATEST], __ATOMIC_ACQUIRE);
        if (latest == 0) return 0;
        const uint64_t *from = page + FFCLOCK_PAGE_SLOTS + (latest >> 1 & 1) * FFCLOCK_PAGE_STRIDE;
        for (int n = 0; n < FFCLOCK_PAGE_SLOT_WORDS; n++) slot[n] = word(&from[n]);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (word(&from[FFCLOCK_PAGE_SLOT_SEQUENCE]) != latest) continue;
        uint64_t check = FFCLOCK_PAGE_CHECK_SEED;
        for (int n = 0; n < FFCLOCK_PAGE_SLOT_CHECK_ABSOLUTE; n++) check += slot[n];
        return check == slot[FFCLOCK_PAGE_SLOT_CHECK_ABSOLUTE];
    }
    return 0;
}

/* An error figure in 2^-32 s at an age, as ns rounded up; -1 where it is unknown. */
static int64_t grown_ns(uint64_t figure, uint64_t per_tick, uint64_t age) {
    if (figure == FFCLOCK_PAGE_UNKNOWN || per_tick == FFCLOCK_PAGE_UNKNOWN) return -1;
    unsigned __int128 grown = figure + ((unsigned __int128)age * per_tick >> 64);
    unsigned __int128 ns = (grown * SECOND + 0xffffffff) >> 32;
    return ns > INT64_MAX ? -1 : (int64_t)ns;
}

/* UTC at `ticks` from the slot's counter [ns]: docs/page.md, "All other readings". */
static int64_t utc_ns(const uint64_t *slot, int64_t ticks) {
    uint64_t state = slot[FFCLOCK_PAGE_SLOT_STATE];
    int64_t offset = (int32_t)(state >> 32);
    __int128 span = (__int128)ticks * slot[FFCLOCK_PAGE_SLOT_PERIOD] >> (state & 0xff);
    __int128 sum = (__int128)slot[FFCLOCK_PAGE_SLOT_FRACTION] + span;
    int64_t tai = (int64_t)slot[FFCLOCK_PAGE_SLOT_UTC_SECONDS] + offset + (int64_t)(sum >> 64);
    uint64_t offsets = slot[FFCLOCK_PAGE_SLOT_LEAP_OFFSETS];
    if (slot[FFCLOCK_PAGE_SLOT_LEAP_AT] != FFCLOCK_PAGE_MISSING)
        offset = tai < (int64_t)slot[FFCLOCK_PAGE_SLOT_LEAP_AT] ? (int32_t)offsets : (int32_t)(offsets >> 32);
    return (tai - offset) * SECOND + (int64_t)((unsigned __int128)(uint64_t)sum * SECOND >> 64);
}

static int status_at(const uint64_t *slot, uint64_t raw) {
    if ((int64_t)(raw - slot[FFCLOCK_PAGE_SLOT_VALID_UNTIL]) > 0) return UNSYNCHRONISED;
    return (int)(slot[FFCLOCK_PAGE_SLOT_STATE] >> 16 & 0xff);
}

/* The cells of a reading behind truth and raw counter; none where the page shows no time. */
static void format_reading(char *to, size_t room, int64_t truth, uint64_t raw) {
    static const char *const names[] = {"", "unsynchronised", "warming-up", "holdover", "synchronised"};
    uint64_t slot[FFCLOCK_PAGE_SLOT_WORDS];
    snprintf(to, room, ",none,,,,\n");
    if (!page) map_page();
    if (!page || !read_slot(slot)) return;
    int published = (int)(slot[FFCLOCK_PAGE_SLOT_STATE] >> 16 & 0xff), status = status_at(slot, raw);
    int is_of_epoch = (int64_t)(raw - slot[FFCLOCK_PAGE_SLOT_EPOCH_BEGIN]) >= 0;
    if (published <= UNSYNCHRONISED || published > 4 || !is_of_epoch) return;
    int64_t ticks = (int64_t)(raw - slot[FFCLOCK_PAGE_SLOT_COUNTER]);
    uint64_t age = ticks < 0 ? (uint64_t)-ticks : (uint64_t)ticks;
    int64_t utc = utc_ns(slot, ticks);
    int64_t bound = grown_ns(slot[FFCLOCK_PAGE_SLOT_BOUND], slot[FFCLOCK_PAGE_SLOT_BOUND_PER_TICK], age);
    int64_t noise = grown_ns(slot[FFCLOCK_PAGE_SLOT_UNCERTAINTY], slot[FFCLOCK_PAGE_SLOT_UNCERTAINTY_PER_TICK], age);
    char known[2][24] = {"", ""};
    if (bound >= 0) snprintf(known[0], sizeof known[0], "%lld", (long long)bound);
    if (noise >= 0) snprintf(known[1], sizeof known[1], "%lld", (long long)noise);
    snprintf(to, room, ",%s,%lld,%s,%s,%lld\n", names[status], (long long)utc, known[0], known[1],
             (long long)(utc - truth));
}

void samples_take(void) {
    char line[256];
    int64_t truth = nanoseconds(clocks->truth), raw = nanoseconds(CLOCK_MONOTONIC_RAW);
    int length = snprintf(line, sizeof line, "%lld,%lld", (long long)truth, (long long)raw);
    format_reading(line + length, sizeof line - (size_t)length, truth, (uint64_t)raw);
    write_line(line, strlen(line));
    next_second = truth / SECOND + 1;
}
