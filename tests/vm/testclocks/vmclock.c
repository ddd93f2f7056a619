// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/vmclock0 for kernels before 6.13, which have no driver of the VMClock
 * device: its page, read-only, as ptp_vmclock gives it. For the virtual machine
 * of the tests alone.
 */
#include <linux/acpi.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/platform_device.h>

static struct resource *page;

static int vmclock_mmap(struct file *file, struct vm_area_struct *vma)
{
	if ((vma->vm_flags & (VM_READ | VM_WRITE)) != VM_READ)
		return -EROFS;
	if (vma->vm_end - vma->vm_start != PAGE_SIZE || vma->vm_pgoff)
		return -EINVAL;
	return io_remap_pfn_range(vma, vma->vm_start, PHYS_PFN(page->start),
				  PAGE_SIZE, vma->vm_page_prot);
}

static const struct file_operations vmclock_fops = {
	.owner = THIS_MODULE,
	.mmap = vmclock_mmap,
};

static struct miscdevice vmclock_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vmclock0",
	.fops = &vmclock_fops,
};

static void vmclock_remove(void *unused)
{
	misc_deregister(&vmclock_device);
}

static int vmclock_probe(struct platform_device *device)
{
	int error;

	page = platform_get_resource(device, IORESOURCE_MEM, 0);
	if (!page || resource_size(page) < PAGE_SIZE)
		return -ENODEV;
	error = misc_register(&vmclock_device);
	if (error)
		return error;
	return devm_add_action_or_reset(&device->dev, vmclock_remove, NULL);
}

static const struct acpi_device_id vmclock_ids[] = {
	{ "AMZNC10C" },
	{ "VMCLOCK" },
	{}
};
MODULE_DEVICE_TABLE(acpi, vmclock_ids);

static struct platform_driver vmclock_driver = {
	.probe = vmclock_probe,
	.driver = { .name = "vmclock", .acpi_match_table = vmclock_ids },
};
module_platform_driver(vmclock_driver);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("/dev/vmclock0 to test with");
