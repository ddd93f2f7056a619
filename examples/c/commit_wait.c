/* A store that gives each transaction a time, and shows it only when that time has certainly passed: who sees one
 * transaction and then begins another, on any host whose bound holds, gets a later time for it.
 *
 *   cc commit_wait.c $(pkg-config --cflags --libs ffclock) -o commit_wait && ./commit_wait [PAGE]
 */
#include <ffclock.h>
#include <inttypes.h>
#include <stdio.h>

/* The longest that a commit may take. */
#define PATIENCE_NS UINT64_C(10000000000)

/* A transaction that was written, with its time, and what the clock shows when others may see it. */
struct commit {
    const char *text;
    int64_t tai_ns;
    struct ffclock_range seen;
};

static enum ffclock_error write_and_wait(const struct ffclock *clock, struct commit *commit)
{
    struct ffclock_stamp now;
    struct ffclock_range range;
    enum ffclock_error error;

    ffclock_stamp(clock, &now);
    if ((error = ffclock_range_at(clock, &now, &range)))
        return error;
    commit->tai_ns = range.latest_ns;
    /* Here the transaction is written with its time. What that takes is taken off the wait. */
    return ffclock_wait_certainly_after(clock, commit->tai_ns, PATIENCE_NS, &commit->seen);
}

int main(int argc, char **argv)
{
    struct ffclock *clock = NULL;
    struct ffclock_stamp begin, end;
    struct ffclock_interval took;
    struct commit store[2] = {{.text = "first"}, {.text = "second"}};
    enum ffclock_error error = ffclock_open(argc > 1 ? argv[1] : NULL, &clock);

    if (!error)
        error = ffclock_stamp(clock, &begin);
    for (int number = 0; number < 2 && !error; number++)
        error = write_and_wait(clock, &store[number]);
    if (!error)
        error = ffclock_stamp(clock, &end);
    if (!error)
        error = ffclock_elapsed(clock, &begin, &end, &took);
    ffclock_close(clock);
    if (error) {
        fprintf(stderr, "%s\n", ffclock_strerror(error));
        return 1;
    }
    if (store[0].tai_ns >= store[1].tai_ns || !ffclock_certainly_before(&store[0].seen, &store[1].seen)) {
        fprintf(stderr, "%s and %s are not in order\n", store[0].text, store[1].text);
        return 1;
    }
    printf("2 commits in order, in %" PRId64 " us\n", took.span_ns / 1000);
    return 0;
}
