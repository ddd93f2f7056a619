/* Reads a page without the library, by docs/page.md: prints the words of its latest slot, or says that it is torn. */
#include <ffclock_page.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

static union {
    struct ffclock_page page;
    uint64_t words[FFCLOCK_PAGE_BYTES / 8];
} memory;

int main(int argc, char **argv)
{
    FILE *file = fopen(argc > 1 ? argv[1] : "", "rb");
    if (!file || fread(&memory, sizeof memory, 1, file) != 1)
        return 1;
    fclose(file);
    if (memory.page.magic != FFCLOCK_PAGE_MAGIC || memory.page.version != FFCLOCK_PAGE_VERSION)
        return 2;

    const struct ffclock_page_slot *slot = &memory.page.slots[(memory.page.latest >> 1) & 1].slot;
    uint64_t sum = FFCLOCK_PAGE_CHECK_SEED;
    for (int word = 0; word < FFCLOCK_PAGE_SLOT_CHECK_ALL; word++)
        sum += memory.words[FFCLOCK_PAGE_SLOTS + FFCLOCK_PAGE_STRIDE * ((memory.page.latest >> 1) & 1) + word];
    if (slot->sequence != memory.page.latest || sum != slot->check_all)
        return 3;

    printf("counter %" PRIu64 "\n", slot->counter);
    printf("utc_seconds %" PRId64 "\n", (int64_t)slot->utc_seconds);
    printf("fraction %" PRIu64 "\n", slot->fraction);
    printf("period %" PRIu64 "\n", slot->period);
    printf("shift %" PRIu64 "\n", slot->state >> FFCLOCK_PAGE_STATE_PERIOD_SHIFT & 0xff);
    printf("status %" PRIu64 "\n", slot->state >> FFCLOCK_PAGE_STATE_STATUS & 0xff);
    printf("tai_offset %" PRId32 "\n", (int32_t)(slot->state >> FFCLOCK_PAGE_STATE_TAI_OFFSET));
    printf("counter_id %" PRIu64 "\n", slot->tag >> FFCLOCK_PAGE_TAG_COUNTER_ID & 0xff);
    printf("epoch %" PRIu64 "\n", slot->tag >> FFCLOCK_PAGE_TAG_EPOCH);
    printf("epoch_begin %" PRIu64 "\n", slot->epoch_begin);
    printf("valid_until %" PRIu64 "\n", slot->valid_until);
    printf("difference_bound %" PRIu64 "\n", slot->difference_bound);
    printf("server %" PRIx64 "\n", slot->server);

    /* Writers of earlier versions leave these words at 0. */
    sum = FFCLOCK_PAGE_CHECK_SEED + slot->sequence + slot->bound_strict + slot->bound_strict_per_tick +
          slot->bound_strict_growth + slot->vote;
    if (sum != slot->check_strict)
        return 4;
    printf("bound_strict %" PRIu64 "\n", slot->bound_strict);
    printf("deciders %" PRIu64 "\n", slot->vote >> FFCLOCK_PAGE_VOTE_DECIDERS & 0xff);
    printf("noise %" PRIu64 "\n", slot->vote >> FFCLOCK_PAGE_VOTE_NOISE);

    if (memory.page.machine_watched == 1)
        printf("machine %" PRIu64 "\n", memory.page.machine);
    sum = FFCLOCK_PAGE_CHECK_SEED + memory.page.machine + memory.page.generation;
    if (memory.page.machine_watched == 1 && memory.page.generation_check == (sum ? sum : 1))
        printf("generation %" PRIu64 "\n", memory.page.generation);
    return 0;
}
