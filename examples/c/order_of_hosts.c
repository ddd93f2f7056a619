/* Which of two events was first, of which each was seen by a host of its own.
 *
 *   cc order_of_hosts.c $(pkg-config --cflags --libs ffclock) -o order_of_hosts
 *   ./order_of_hosts event [PAGE]      prints the range in which the event was: from and until, in ns of TAI
 *   ./order_of_hosts compare FROM UNTIL FROM UNTIL
 */
#include <errno.h>
#include <ffclock.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *why)
{
    fprintf(stderr, "%s\n", why);
    return 1;
}

/* The range of an event that happens now, which can be sent to other hosts. */
static int show_event(const char *page)
{
    struct ffclock *clock = NULL;
    struct ffclock_stamp event;
    struct ffclock_range range;
    enum ffclock_error error = ffclock_open(page, &clock);

    if (error)
        return fail(ffclock_strerror(error));
    ffclock_stamp(clock, &event);
    error = ffclock_range_at(clock, &event, &range);
    ffclock_close(clock);
    if (error)
        return fail(ffclock_strerror(error));
    if (range.latest_ns == INT64_MAX)
        return fail("the clock is unsynchronised: nothing is certain about this event");
    printf("%" PRId64 " %" PRId64 "\n", range.earliest_ns, range.latest_ns);
    return 0;
}

static int parse(const char *text, int64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static int compare(char **words)
{
    struct ffclock_range first, second;

    if (!parse(words[0], &first.earliest_ns) || !parse(words[1], &first.latest_ns) ||
        !parse(words[2], &second.earliest_ns) || !parse(words[3], &second.latest_ns))
        return fail("a range is two whole numbers");
    if (ffclock_certainly_before(&first, &second))
        puts("the first was first");
    else if (ffclock_certainly_before(&second, &first))
        puts("the second was first");
    else
        puts("it cannot be known");
    return 0;
}

int main(int argc, char **argv)
{
    if ((argc == 2 || argc == 3) && strcmp(argv[1], "event") == 0)
        return show_event(argv[2]);
    if (argc == 6 && strcmp(argv[1], "compare") == 0)
        return compare(argv + 2);
    return fail("usage: order_of_hosts event [PAGE] | compare FROM UNTIL FROM UNTIL");
}
