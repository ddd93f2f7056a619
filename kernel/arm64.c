// SPDX-License-Identifier: GPL-2.0
/*
 * The hardware counters of 64-bit ARM: the virtual counter alone, which user
 * space can read too. Whatever else the kernel keeps time with is followed as
 * FFCOUNTER_ACTIVE.
 */
#include "ffcounter.h"
#include "hardware.h"

static u64 read_cpu(void)
{
	return ffc_cycles();
}

void ffc_find_hardware(ffc_add *add)
{
	u64 hertz = read_sysreg(cntfrq_el0);

	/* 56 bits are certain (Arm ARM, D11.1.2), which take 40 years at 50 MHz. */
	if (hertz)
		add(FFCOUNTER_TSC, read_cpu, 64, hertz * 1000);
}

void ffc_release_hardware(void)
{
}
