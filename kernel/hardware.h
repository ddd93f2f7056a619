/* SPDX-License-Identifier: GPL-2.0 */
/* What differs from architecture to architecture: x86.c, arm64.c. */
#ifndef _FFC_HARDWARE_H
#define _FFC_HARDWARE_H

#include <linux/types.h>

#ifdef CONFIG_X86
#include <asm/msr.h>
#include <asm/tsc.h>

/* The counter that each CPU has of its own, read in order. */
static inline u64 ffc_cycles(void)
{
	return rdtsc_ordered();
}

/* Its rate as the kernel has it; 0 where there is none. */
static inline u64 ffc_cycles_khz(void)
{
	return tsc_khz;
}

/* Whether the kernel has found it unsteady. */
static inline bool ffc_cycles_are_unsteady(void)
{
	return check_tsc_unstable();
}
#else
#include <asm/barrier.h>
#include <asm/sysreg.h>

static inline u64 ffc_cycles(void)
{
	isb();
	return read_sysreg(cntvct_el0);
}

static inline u64 ffc_cycles_khz(void)
{
	return read_sysreg(cntfrq_el0) / 1000;
}

static inline bool ffc_cycles_are_unsteady(void)
{
	return false;
}
#endif

/* Makes a counter known: its id, how it is read, its width, its rate [mHz]. */
typedef void ffc_add(u16 id, u64 (*read)(void), u16 width, u64 millihertz);

void ffc_find_hardware(ffc_add *add);
void ffc_release_hardware(void);

#endif /* _FFC_HARDWARE_H */
