/* A clock of its own for one program: preloaded, it stands between the program and its C library.
 *
 * The base is the host's CLOCK_REALTIME, the truth. An oscillator file gives the raw counter as a function of it
 * (CLOCK_MONOTONIC_RAW of the program); a clock file gives the system clock as segments of straight lines over the raw
 * counter. What the program does to its system clock changes that file and no clock of the host: no function here hands
 * such a call on. Stamps of packets, which the kernel takes with the host's clock, become those of the program's clock.
 *
 * The discipline is that of Linux (kernel/time/ntp.c): tick, frequency, PLL and FLL of ADJ_OFFSET, adjtime, steps. What
 * changes at later seconds by itself is written ahead, so that a monitor that only reads the file needs no model of it.
 * Programs that are static or make raw system calls are not covered. CLOCK_MONOTONIC and timers stay those of the host:
 * they differ by parts per million.
 *
 * Several programs may have the same clock, such as a daemon and its follower. The lock of those that write lies in the
 * clock file; one that is killed while it writes leaves the lock to the next, which repairs the clock first.
 *
 * Layout: clock_file.rs and oscillator_file.rs, which make the files and read them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define MAGIC "FFLIVEC1"
#define OSCILLATOR_MAGIC "FFLIVEO1"
#define SEGMENTS 4096
#define AHEAD 1024               /* seconds written ahead */
#define SHIFT_PLL 2              /* include/linux/timex.h, as the rest of these */
#define SHIFT_FLL 2
#undef MAXTC
#define MAXTC 10
#define MAX_TAI 100000            /* s, MAX_TAI_OFFSET */
#define ADJ_ADJTIME 0x8000       /* of the kernel's own header: adjtime(3) in the clothes of adjtimex(2) */
#define MINSEC 256
#define MAXSEC 2048
#define MAXPHASE 5e8             /* ns */
#define MAXFREQ 5e-4             /* relative */
#define MAX_TICKADJ 5e5          /* ns in a second */
#define PHASE_LIMIT 16000000     /* us */

struct segment {
    int64_t raw;                 /* ns of the raw counter at its begin */
    int64_t shown;               /* ns of the system clock there */
    double shown_part;           /* and the part of a ns */
    double slope;                /* relative rate against the raw counter, less 1 */
    double phase;                /* the part of it that works off an offset */
    double offset;               /* ns of ADJ_OFFSET that remain after it */
    double adjust;               /* ns of adjtime that remain after it */
    uint64_t change;             /* the sequence during the change that made it, or the segment it continues */
};

struct discipline {
    int64_t tick;                /* us */
    double frequency;            /* relative */
    int64_t constant;
    int64_t status;
    int64_t reference;           /* s of the system clock at the last ADJ_OFFSET */
    int64_t error_at;            /* s of the system clock where the two below were true */
    int64_t max_error;           /* us */
    int64_t est_error;           /* us */
    int64_t tai;
};

/* What programs that write need among themselves. */
struct writing {
    uint64_t is_made;            /* the lock; the laboratory clears this before the programs of a session start */
    pthread_mutex_t lock;
    struct discipline before;    /* the change that is under way */
    uint64_t drops;              /* of the ring: whether these two are to become the first and the count */
    uint64_t first, count;
};

struct clock_file {
    uint64_t magic;
    uint64_t sequence;           /* odd while it is written */
    uint64_t first, count;       /* of the ring of segments */
    struct discipline discipline;
    struct writing writing;
    uint8_t spare[4096 - 32 - sizeof(struct discipline) - sizeof(struct writing)];
    struct segment ring[SEGMENTS];
};

_Static_assert(offsetof(struct clock_file, writing) == 104 && offsetof(struct clock_file, ring) == 4096, "clock_file.rs");

struct oscillator_file {
    uint64_t magic;
    int64_t origin;              /* ns of the host's clock at the first knot */
    int64_t raw_origin;          /* ns of the raw counter there, but for phase[0] */
    int64_t interval;            /* ns between two knots */
    int64_t knots;
    double phase[];              /* ns */
};

static struct clock_file *file;
static const struct oscillator_file *oscillator;
static int only_reads;           /* a witness: the clock is another program's */
static int in_guest;             /* of user-mode Linux */

static int open_named(const char *variable, int writable) {
    const char *path = getenv(variable);
    return path ? open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC) : -1;
}

/* Maps a file that has this many octets at least. */
static void *map(int fd, int writable, size_t least) {
    struct stat about;
    if (fd < 0 || fstat(fd, &about) < 0 || (uint64_t)about.st_size < least) return NULL;
    void *at = mmap(NULL, (size_t)about.st_size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Whether it is an oscillator with as many knots as its file has room for. */
static int is_oscillator(int fd) {
    const struct oscillator_file *o = oscillator;
    struct stat about;
    if (memcmp(&o->magic, OSCILLATOR_MAGIC, sizeof o->magic) || o->interval <= 0 || o->knots < 2) return 0;
    return !fstat(fd, &about) && (uint64_t)o->knots <= ((uint64_t)about.st_size - sizeof *o) / sizeof o->phase[0];
}

static int make_lock(int fd);

/* A program that asked for a clock of its own and did not get it must not run on the host's. */
__attribute__((constructor)) static void begin(void) {
    static const char refusal[] = "ffclock-live: no clock file or no oscillator file\n";
    only_reads = getenv("FFCLOCK_LIVE_WITNESS") != NULL;
    in_guest = getenv("FFCLOCK_LIVE_GUEST") != NULL;
    int clock = open_named("FFCLOCK_LIVE_CLOCK", !only_reads), own = open_named("FFCLOCK_LIVE_OSCILLATOR", 0);
    file = map(clock, !only_reads, sizeof *file);
    oscillator = map(own, 0, sizeof *oscillator);
    int is_ready = file && oscillator && is_oscillator(own) && (only_reads || make_lock(clock));
    close(clock);
    close(own);
    if (is_ready) return;
    if (write(2, refusal, sizeof refusal - 1) < 0) _exit(126);
    _exit(126);
}

static int real_gettime(clockid_t clock, struct timespec *to) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    return next ? next(clock, to) : (int)syscall(SYS_clock_gettime, clock, to);
}

/* A system call in a guest is answered by the guest's kernel. A jump to the legacy page of vsyscalls is not: it is a
 * fault, which the host's kernel answers by itself, with its own clock in whole microseconds. [ns] */
static int64_t legacy_host_now(void) {
    struct timeval now;
    ((int (*)(struct timeval *, void *))0xffffffffff600000)(&now, NULL);
    return now.tv_sec * SECOND + now.tv_usec * 1000;
}

static int64_t host_now(void) {
    struct timespec now;
    if (in_guest) return legacy_host_now();
    real_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

/* For a witness in a guest, whose kernel keeps what it once read of the clock file: reads it again. Gives the sequence of
 * what it has read; a clock that is being written (odd) must not be read. */
uint64_t ffclock_live_renew(void) {
    int clock = open_named("FFCLOCK_LIVE_CLOCK", 0);
    munmap(file, sizeof *file);
    posix_fadvise(clock, 0, 0, POSIX_FADV_DONTNEED);
    file = map(clock, 0, sizeof *file);
    close(clock);
    return file ? file->sequence : 1;
}

/* The raw counter at a time of the host; the last rate goes on beyond the knots. */
static int64_t raw_at(int64_t host) {
    const struct oscillator_file *o = oscillator;
    int64_t since = host - o->origin, knot = since / o->interval;
    if (knot < 0) knot = 0;
    if (knot > o->knots - 2) knot = o->knots - 2;
    double part = (double)(since - knot * o->interval) / (double)o->interval;
    double phase = o->phase[knot] + part * (o->phase[knot + 1] - o->phase[knot]);
    return o->raw_origin + since + (int64_t)llround(phase);
}

static struct segment *at(uint64_t index) { return &file->ring[(file->first + index) % SEGMENTS]; }

/* The last segment that begins at or before the reading; the first where there is none. */
static uint64_t index_of(int64_t raw) {
    uint64_t low = 0, high = file->count;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (at(middle)->raw <= raw) low = middle; else high = middle;
    }
    return low;
}

static int64_t along(const struct segment *s, int64_t raw, double *part) {
    double more = s->shown_part + s->slope * (double)(raw - s->raw), whole = floor(more);
    if (part) *part = more - whole;
    return s->shown + (raw - s->raw) + (int64_t)whole;
}

static void extend_where_due(int64_t raw);
static void change_begins(void);
static void change_ends(void);

/* The system clock at a reading of the raw counter. Where a change takes long, the program that makes it may be dead:
 * the next one that has the lock repairs the clock. */
static int64_t shown_at(int64_t raw) {
    for (int tries = 1;; tries++) {
        if (tries % 1000 == 0 && !only_reads) change_begins(), change_ends();
        if (tries == 100000000) _exit(126);   /* a witness of a clock that no program repairs */
        uint64_t before = __atomic_load_n(&file->sequence, __ATOMIC_ACQUIRE);
        int64_t shown = along(at(index_of(raw)), raw, NULL);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (!(before & 1) && before == __atomic_load_n(&file->sequence, __ATOMIC_RELAXED)) return shown;
    }
}

static int64_t shown_now(void) {
    int64_t raw = raw_at(host_now());
    extend_where_due(raw);
    return shown_at(raw);
}

/* ---- the discipline: all below with the lock held and the sequence odd ---- */

static void repair(void);

static void change_begins(void) {
    struct writing *w = &file->writing;
    if (pthread_mutex_lock(&w->lock) == EOWNERDEAD) {
        repair();
        pthread_mutex_consistent(&w->lock);
    }
    w->before = file->discipline;
    __atomic_store_n(&file->sequence, file->sequence + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void change_ends(void) {
    __atomic_store_n(&file->sequence, file->sequence + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&file->writing.lock);
}

/* The ring as it was to become without its oldest segment, also for one who was killed in the middle. */
static void finish_drop(void) {
    struct writing *w = &file->writing;
    if (!__atomic_load_n(&w->drops, __ATOMIC_ACQUIRE)) return;
    file->first = w->first, file->count = w->count;
    __atomic_store_n(&w->drops, 0, __ATOMIC_RELEASE);
}

/* The count comes last: a segment is there as a whole, or not at all. */
static void append(const struct segment *s) {
    struct writing *w = &file->writing;
    if (file->count == SEGMENTS) {
        w->first = (file->first + 1) % SEGMENTS, w->count = SEGMENTS - 1;
        __atomic_store_n(&w->drops, 1, __ATOMIC_RELEASE);
        finish_drop();
    }
    *at(file->count) = *s;
    __atomic_store_n(&file->count, file->count + 1, __ATOMIC_RELEASE);
}

static double limited(double value, double limit) { return fmax(-limit, fmin(limit, value)); }

static double base_slope(void) {
    return (double)(file->discipline.tick - 10000) / 10000 + file->discipline.frequency;
}

/* A second begins (second_overflow): takes this second's share off what remains, whether the loop is still on or not. */
static void second_begins(struct segment *s) {
    const struct discipline *d = &file->discipline;
    double share = ldexp(s->offset, -(SHIFT_PLL + (int)d->constant));
    if (fabs(share) < 1e-3) share = s->offset = 0;
    s->offset -= share;
    double adjust = limited(s->adjust, MAX_TICKADJ);
    s->adjust -= adjust;
    s->phase = (share + adjust) * 1e-9;
    s->slope = base_slope() + s->phase;
}

static int is_settled(const struct segment *s) { return s->phase == 0 && s->offset == 0 && s->adjust == 0; }

/* Writes the segments of the coming seconds until nothing changes by itself any more, or far enough. */
static void write_ahead(int64_t raw) {
    struct segment s = *at(file->count - 1);
    while (!is_settled(&s) && s.raw < raw + AHEAD * SECOND) {
        double part, left = (double)(SECOND - ((s.shown % SECOND) + SECOND) % SECOND) - s.shown_part;
        int64_t end = s.raw + (int64_t)ceil(left / (1 + s.slope));
        s.shown = along(&s, end, &part);
        s.shown_part = part;
        s.raw = end;
        second_begins(&s);
        append(&s);
    }
}

static void extend_where_due(int64_t raw) {
    struct segment last = *at(file->count - 1);
    if (only_reads || is_settled(&last) || last.raw > raw + AHEAD / 2 * SECOND) return;
    change_begins();
    write_ahead(raw);
    change_ends();
}

/* After one who was killed in a change: the change is there if its first segment is, otherwise it never was. What was
 * written ahead and went with it follows from the last segment. */
static void repair(void) {
    if (!(file->sequence & 1)) return;
    finish_drop();
    if (at(file->count - 1)->change != file->sequence) file->discipline = file->writing.before;
    write_ahead(raw_at(host_now()));
    __atomic_store_n(&file->sequence, file->sequence + 1, __ATOMIC_RELEASE);
}

/* Makes the lock unless another program has. While that is done, the file is locked, by a lock that no killed program
 * keeps. */
static int make_lock(int fd) {
    struct writing *w = &file->writing;
    pthread_mutexattr_t kind;
    if (memcmp(&file->magic, MAGIC, sizeof file->magic) || flock(fd, LOCK_EX) < 0) return 0;
    int is_made = w->is_made || (pthread_mutexattr_init(&kind) == 0
        && pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED) == 0
        && pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST) == 0
        && pthread_mutex_init(&w->lock, &kind) == 0);
    if (is_made && !w->is_made) repair();
    w->is_made = (uint64_t)is_made;
    flock(fd, LOCK_UN);
    return is_made;
}

/* Ends the present segment: what was written ahead goes, and a new one begins at `raw`. */
static struct segment cut(int64_t raw) {
    uint64_t index = index_of(raw);
    __atomic_store_n(&file->count, index + 1, __ATOMIC_RELEASE);
    struct segment s = *at(index);
    s.change = file->sequence;
    double part;
    s.shown = along(&s, raw, &part);
    s.shown_part = part;
    s.raw = raw;
    return s;
}

static void clear(struct segment *s) {
    struct discipline *d = &file->discipline;
    s->offset = s->adjust = s->phase = 0;
    d->status |= STA_UNSYNC;
    d->max_error = d->est_error = PHASE_LIMIT;
    d->error_at = s->shown / SECOND;
}

static void grow_max_error(int64_t second) {
    struct discipline *d = &file->discipline;
    if (second <= d->error_at) return;
    d->max_error += 500 * (second - d->error_at);
    d->error_at = second;
    if (d->max_error > PHASE_LIMIT) d->max_error = PHASE_LIMIT, d->status |= STA_UNSYNC;
}

/* ntp_update_offset, with ntp_update_offset_fll. */
static void update_offset(struct segment *s, long wanted) {
    struct discipline *d = &file->discipline;
    if (!(d->status & STA_PLL)) return;
    double offset = limited((double)wanted * (d->status & STA_NANO ? 1 : 1000), MAXPHASE);
    int64_t now = s->shown / SECOND, seconds = d->status & STA_FREQHOLD ? 0 : now - d->reference;
    d->reference = now;
    d->status &= ~STA_MODE;
    double change = 0;
    if (seconds >= MINSEC && (d->status & STA_FLL || seconds > MAXSEC)) {
        d->status |= STA_MODE;
        change = ldexp(offset, -SHIFT_FLL) / (double)seconds;
    }
    int64_t most = 1LL << (SHIFT_PLL + 1 + d->constant);
    change += ldexp(offset * (double)(seconds > most ? most : seconds), -2 * (SHIFT_PLL + 2 + (int)d->constant));
    d->frequency = limited(d->frequency + change * 1e-9, MAXFREQ);
    s->offset = offset;
}

static void set_status(int wanted, int64_t second) {
    struct discipline *d = &file->discipline;
    if (d->status & STA_PLL && !(wanted & STA_PLL)) d->status = STA_UNSYNC;
    if (!(d->status & STA_PLL) && wanted & STA_PLL) d->reference = second;
    d->status = (d->status & STA_RONLY) | (wanted & ~STA_RONLY);
}

static void set_constant(long wanted) {
    struct discipline *d = &file->discipline;
    wanted = wanted < 0 ? 0 : wanted > MAXTC ? MAXTC : wanted;
    if (!(d->status & STA_NANO)) wanted += 4;
    d->constant = wanted > MAXTC ? MAXTC : wanted;
}

/* process_adjtimex_modes, in its order. */
static void process(struct segment *s, const struct timex *x) {
    struct discipline *d = &file->discipline;
    if (x->modes & ADJ_STATUS) set_status(x->status, s->shown / SECOND);
    if (x->modes & ADJ_NANO) d->status |= STA_NANO;
    if (x->modes & ADJ_MICRO) d->status &= ~STA_NANO;
    if (x->modes & ADJ_FREQUENCY) d->frequency = limited((double)x->freq / 65536e6, MAXFREQ);
    if (x->modes & ADJ_MAXERROR) d->max_error = x->maxerror < 0 ? 0 : x->maxerror > PHASE_LIMIT ? PHASE_LIMIT : x->maxerror;
    if (x->modes & ADJ_ESTERROR) d->est_error = x->esterror < 0 ? 0 : x->esterror > PHASE_LIMIT ? PHASE_LIMIT : x->esterror;
    if (x->modes & ADJ_TIMECONST) set_constant(x->constant);
    if (x->modes & ADJ_TAI && x->constant >= 0 && x->constant <= MAX_TAI) d->tai = x->constant;
    if (x->modes & ADJ_OFFSET) update_offset(s, x->offset);
    if (x->modes & ADJ_TICK) d->tick = x->tick;
}

static void inject(struct segment *s, const struct timex *x) {
    s->shown += x->time.tv_sec * SECOND + x->time.tv_usec * (x->modes & ADJ_NANO ? 1 : 1000);
    clear(s);
}

static int state_of(void) { return file->discipline.status & (STA_UNSYNC | STA_CLOCKERR) ? TIME_ERROR : TIME_OK; }

static void fill(struct timex *x, const struct segment *s) {
    const struct discipline *d = &file->discipline;
    int nano = (d->status & STA_NANO) != 0;
    x->offset = (long)(s->offset / (nano ? 1 : 1000));
    /* The kernel leaves out what is below a unit; what is so little above one comes from these being no whole numbers. */
    x->freq = (long)(d->frequency * 65536e6 + copysign(1e-3, d->frequency));
    x->maxerror = d->max_error, x->esterror = d->est_error;
    x->status = (int)d->status, x->constant = d->constant;
    x->precision = 1, x->tolerance = 500L << 16, x->tick = d->tick, x->tai = (int)d->tai;
    x->ppsfreq = x->jitter = x->shift = x->stabil = x->jitcnt = x->calcnt = x->errcnt = x->stbcnt = 0;
    x->time.tv_sec = s->shown / SECOND;
    x->time.tv_usec = s->shown % SECOND / (nano ? 1 : 1000);
}

static int is_bad(const struct timex *x) {
    if (x->modes & ADJ_ADJTIME) return !(x->modes & ADJ_OFFSET);
    return (x->modes & ADJ_TICK && (x->tick < 9000 || x->tick > 11000))
        || (x->modes & ADJ_SETOFFSET && (x->time.tv_usec < 0 || x->time.tv_usec >= (x->modes & ADJ_NANO ? SECOND : 1000000)));
}

static int discipline(struct timex *x) {
    if (is_bad(x)) return errno = EINVAL, -1;
    change_begins();
    int64_t raw = raw_at(host_now());
    struct segment s = cut(raw);
    grow_max_error(s.shown / SECOND);
    long old = lround(s.adjust / 1000);
    if (x->modes & ADJ_ADJTIME) {
        if (!(x->modes & ADJ_NANO)) s.adjust = (double)x->offset * 1000; /* ADJ_NANO is ADJ_OFFSET_READONLY here */
    } else {
        if (x->modes & ADJ_SETOFFSET) inject(&s, x);
        process(&s, x);
    }
    s.slope = base_slope() + s.phase;
    if (x->modes) append(&s);
    write_ahead(raw);
    fill(x, &s);
    if (x->modes & ADJ_ADJTIME) x->offset = old;
    int state = state_of();
    change_ends();
    return state;
}

static void set_to(int64_t shown) {
    change_begins();
    struct segment s = cut(raw_at(host_now()));
    s.shown = shown, s.shown_part = 0;
    clear(&s);
    s.slope = base_slope();
    append(&s);
    change_ends();
}

/* ---- what the program calls ---- */

static void split(int64_t ns, struct timespec *to) { to->tv_sec = ns / SECOND, to->tv_nsec = ns % SECOND; }

int clock_gettime(clockid_t clock, struct timespec *to) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE: split(shown_now(), to); return 0;
    case CLOCK_MONOTONIC_RAW: split(raw_at(host_now()), to); return 0;
    default: return real_gettime(clock, to);
    }
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
    (void)zone;
    int64_t now = shown_now();
    to->tv_sec = now / SECOND, to->tv_usec = now % SECOND / 1000;
    return 0;
}

time_t time(time_t *to) {
    time_t now = shown_now() / SECOND;
    if (to) *to = now;
    return now;
}

int clock_settime(clockid_t clock, const struct timespec *to) {
    if (clock != CLOCK_REALTIME) return errno = EPERM, -1;
    if (to->tv_nsec < 0 || to->tv_nsec >= SECOND) return errno = EINVAL, -1;
    set_to(to->tv_sec * SECOND + to->tv_nsec);
    return 0;
}

int settimeofday(const struct timeval *to, const struct timezone *zone) {
    (void)zone;
    if (to) set_to(to->tv_sec * SECOND + to->tv_usec * 1000);
    return 0;
}

int clock_adjtime(clockid_t clock, struct timex *x) {
    return clock == CLOCK_REALTIME ? discipline(x) : (errno = EPERM, -1);
}

int adjtimex(struct timex *x) { return discipline(x); }

int ntp_adjtime(struct timex *x) { return discipline(x); }

int adjtime(const struct timeval *wanted, struct timeval *old) {
    struct timex x = {.modes = wanted ? ADJ_OFFSET_SINGLESHOT : ADJ_OFFSET_SS_READ};
    if (wanted) x.offset = wanted->tv_sec * 1000000 + wanted->tv_usec;
    if (discipline(&x) < 0) return -1;
    if (old) old->tv_sec = x.offset / 1000000, old->tv_usec = x.offset % 1000000;
    return 0;
}

int ntp_gettimex(struct ntptimeval *to) {
    struct timex x = {.modes = 0};
    int state = discipline(&x);
    *to = (struct ntptimeval){.time = x.time, .maxerror = x.maxerror, .esterror = x.esterror, .tai = x.tai};
    return state;
}

/* A stamp of a packet: no stamp at all stays none. */
static void convert(struct timespec *stamp) {
    if (stamp->tv_sec == 0 && stamp->tv_nsec == 0) return;
    split(shown_at(raw_at(stamp->tv_sec * SECOND + stamp->tv_nsec)), stamp);
}

static void convert_micro(struct timeval *stamp) {
    struct timespec fine = {stamp->tv_sec, stamp->tv_usec * 1000};
    convert(&fine);
    stamp->tv_sec = fine.tv_sec, stamp->tv_usec = fine.tv_nsec / 1000;
}

static void convert_all(struct msghdr *message) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        /* One for which the program had too little room (MSG_CTRUNC) ends before its stamp does; both kinds are as long. */
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_len < CMSG_LEN(sizeof(struct timespec))) continue;
        if (c->cmsg_type == SCM_TIMESTAMP) convert_micro((struct timeval *)CMSG_DATA(c));
        /* Of the three of SCM_TIMESTAMPING the third is a device's own. */
        if (c->cmsg_type == SCM_TIMESTAMPNS || c->cmsg_type == SCM_TIMESTAMPING) convert((struct timespec *)CMSG_DATA(c));
    }
}

ssize_t recvmsg(int socket, struct msghdr *message, int flags) {
    static ssize_t (*next)(int, struct msghdr *, int);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "recvmsg");
    ssize_t received = next(socket, message, flags);
    if (received >= 0) convert_all(message);
    return received;
}

int recvmmsg(int socket, struct mmsghdr *messages, unsigned int length, int flags, struct timespec *timeout) {
    static int (*next)(int, struct mmsghdr *, unsigned int, int, struct timespec *);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "recvmmsg");
    int received = next(socket, messages, length, flags, timeout);
    for (int i = 0; i < received; i++) convert_all(&messages[i].msg_hdr);
    return received;
}
