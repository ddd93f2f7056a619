// SPDX-License-Identifier: GPL-2.0
/* The hardware counters of x86: TSC, HPET, the ACPI timer, the clock of KVM. */
#include <linux/acpi.h>
#include <linux/acpi_pmtmr.h>
#include <linux/io.h>
#include <linux/math64.h>
#include <asm/cpufeature.h>
#include <asm/hpet.h>
#include <asm/pvclock.h>
#include "ffcounter.h"
#include "hardware.h"

static void __iomem *hpet;
static u32 pm_port;

static u64 read_tsc(void)
{
	return ffc_cycles();
}

static u64 read_hpet(void)
{
	return readl(hpet + HPET_COUNTER);
}

static u64 read_pm(void)
{
	return inl(pm_port) & ACPI_PM_MASK;
}

/* Some chipsets do not latch the timer: a reading counts between two others. */
static u64 read_pm_safe(void)
{
	u64 before, now, after;

	do {
		before = read_pm();
		now = read_pm();
		after = read_pm();
	} while (((now - before) & ACPI_PM_MASK) > ACPI_PM_MASK / 2 ||
		 ((after - now) & ACPI_PM_MASK) > ACPI_PM_MASK / 2);
	return now;
}

/* Only used where the hypervisor says that it is the same on each CPU. */
static u64 read_kvm(void)
{
	struct pvclock_vcpu_time_info *pvti = &pvclock_get_pvti_cpu0_va()->pvti;
	unsigned int version;
	u64 now;

	do {
		version = pvclock_read_begin(pvti);
		now = __pvclock_read_cycles(pvti, rdtsc_ordered());
	} while (pvclock_read_retry(pvti, version));
	return now;
}

static void find_hpet(ffc_add *add)
{
	struct acpi_table_header *table;
	u64 address;

	if (!is_hpet_enabled() ||
	    ACPI_FAILURE(acpi_get_table(ACPI_SIG_HPET, 0, &table)))
		return;
	address = ((struct acpi_table_hpet *)table)->address.address;
	acpi_put_table(table);
	hpet = ioremap(address, HPET_MMAP_SIZE);
	/* The upper half of the capabilities is the period [fs]. */
	if (hpet && readl(hpet + HPET_PERIOD))
		add(FFCOUNTER_HPET, read_hpet, 32,
		    div64_u64(1000000000000000000ULL,
			      readl(hpet + HPET_PERIOD)));
}

static void find_pm(ffc_add *add)
{
	const struct acpi_generic_address *timer = &acpi_gbl_FADT.xpm_timer_block;

	pm_port = acpi_gbl_FADT.pm_timer_block;
	if (timer->address && timer->space_id == ACPI_ADR_SPACE_SYSTEM_IO)
		pm_port = timer->address;
	/* It has 24 bits or 32; only 24 are certain. */
	if (!pm_port)
		return;
	add(FFCOUNTER_ACPI_PM, read_pm, 24, PMTMR_TICKS_PER_SEC * 1000ULL);
	add(FFCOUNTER_ACPI_PM_SAFE, read_pm_safe, 24,
	    PMTMR_TICKS_PER_SEC * 1000ULL);
}

static void find_kvm(ffc_add *add)
{
	struct pvclock_vsyscall_time_info *info = pvclock_get_pvti_cpu0_va();

	if (info && info->pvti.flags & PVCLOCK_TSC_STABLE_BIT)
		add(FFCOUNTER_KVM_CLOCK, read_kvm, 64, 1000000000000ULL);
}

void ffc_find_hardware(ffc_add *add)
{
	if (boot_cpu_has(X86_FEATURE_TSC) && tsc_khz)
		add(FFCOUNTER_TSC, read_tsc, 64, tsc_khz * 1000000ULL);
	find_hpet(add);
	find_pm(add);
	find_kvm(add);
}

void ffc_release_hardware(void)
{
	if (hpet)
		iounmap(hpet);
}
