/* Lets a guest of user-mode Linux set the registers of its processes on processors that have more of them than it knows:
 * preloaded into the guest's kernel, which is a program.
 *
 * The guest keeps registers in a buffer of fixed size. Its host accepts nothing but the whole state of the processor
 * (xstateregs_set), which is larger with AMX, and answers EFAULT. What the guest does not know of stays as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

typedef long (*ptrace_call)(enum __ptrace_request, pid_t, void *, void *);

static ptrace_call next;
static char whole[1 << 16];

__attribute__((constructor)) static void begin(void) {
    *(void **)&next = dlsym(RTLD_NEXT, "ptrace");
    if (!next) _exit(126);
}

long ptrace(enum __ptrace_request request, ...) {
    va_list words;
    va_start(words, request);
    pid_t process = va_arg(words, pid_t);
    void *address = va_arg(words, void *);
    void *data = va_arg(words, void *);
    va_end(words);
    long result = next(request, process, address, data);
    if (result == 0 || request != PTRACE_SETREGSET || address != (void *)NT_X86_XSTATE || errno != EFAULT) return result;
    const struct iovec *known = data;
    struct iovec all = {whole, sizeof whole};
    if (next(PTRACE_GETREGSET, process, address, &all) || known->iov_len > all.iov_len) {
        errno = EFAULT;
        return -1;
    }
    memcpy(whole, known->iov_base, known->iov_len);
    return next(PTRACE_SETREGSET, process, address, &all);
}
