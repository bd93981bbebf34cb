/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_SECCOMP
#include <sched.h>
#include <seccomp.h>
#include <sys/socket.h>
#endif

/* The leak checker of a sanitizer starts a process that looks into this one. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZER_BUILD = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
enum { SANITIZER_BUILD = 1 };
#else
enum { SANITIZER_BUILD = 0 };
#endif
#else
enum { SANITIZER_BUILD = 0 };
#endif

/* Rights that came later than the headers of some systems. */
enum { RIGHT_REFER_BIT = 13, RIGHT_TRUNCATE_BIT = 14, RIGHT_IOCTL_DEVICE_BIT = 15 };
#define RIGHTS_OF_FIRST_VERSION ((UINT64_C(1) << RIGHT_REFER_BIT) - 1)
#define RIGHT_TRUNCATE (UINT64_C(1) << RIGHT_TRUNCATE_BIT)

struct sandbox {
    int version; /* of Landlock; 0 = there is none */
    int ruleset; /* descriptor */
    uint64_t handled;
    bool connects;
};

static uint64_t rights_of_version(int version)
{
    uint64_t rights = RIGHTS_OF_FIRST_VERSION;
    if (version >= 2)
        rights |= UINT64_C(1) << RIGHT_REFER_BIT;
    if (version >= 3)
        rights |= RIGHT_TRUNCATE;
    if (version >= 5)
        rights |= UINT64_C(1) << RIGHT_IOCTL_DEVICE_BIT;
    return rights;
}

struct sandbox *sandbox_prepare(void)
{
    struct sandbox *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    long version = SANITIZER_BUILD ? 0
                                   : syscall(SYS_landlock_create_ruleset, NULL, 0,
                                             LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return s;
    s->handled = rights_of_version((int)version);
    struct landlock_ruleset_attr attributes = { .handled_access_fs = s->handled };
    s->ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    s->version = s->ruleset < 0 ? 0 : (int)version;
    return s;
}

void sandbox_close(struct sandbox *s)
{
    if (s != NULL && s->version > 0)
        close(s->ruleset);
    free(s);
}

static void allow(struct sandbox *s, const char *path, uint64_t rights, uint64_t directory_rights)
{
    struct stat st;
    int fd = s->version > 0 ? open(path, O_PATH | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0) {
        struct landlock_path_beneath_attr rule = {
            .allowed_access = s->handled & (rights | (S_ISDIR(st.st_mode) ? directory_rights : 0)),
            .parent_fd = fd,
        };
        /* Refused for pipes alone, which Landlock leaves open to all. */
        (void)syscall(SYS_landlock_add_rule, s->ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    }
    close(fd);
}

void sandbox_may_read(struct sandbox *s, const char *path)
{
    allow(s, path, LANDLOCK_ACCESS_FS_READ_FILE, LANDLOCK_ACCESS_FS_READ_DIR);
}

void sandbox_may_write_in(struct sandbox *s, const char *directory)
{
    allow(
        s, directory, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | RIGHT_TRUNCATE,
        LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE);
}

void sandbox_may_use_temporary_files(struct sandbox *s)
{
    const char *directories[] = { getenv("SQLITE_TMPDIR"), getenv("TMPDIR"), "/var/tmp", "/tmp" };
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        if (directories[i] != NULL)
            sandbox_may_write_in(s, directories[i]);
}

void sandbox_may_connect(struct sandbox *s)
{
    static const char *const PATHS[] = { "/etc/resolv.conf", "/etc/hosts",
                                         "/etc/host.conf",   "/etc/gai.conf",
                                         "/etc/services",    "/etc/nsswitch.conf",
                                         "/etc/pki",         "/etc/ca-certificates" };
    s->connects = true;
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++)
        sandbox_may_read(s, PATHS[i]);
}

/* What libraries read when they are first used. */
static void allow_system(struct sandbox *s)
{
    static const char *const PATHS[] = { "/usr",     "/lib",           "/lib64",
                                         "/etc/ssl", "/etc/localtime", "/dev/urandom" };
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++)
        sandbox_may_read(s, PATHS[i]);
    allow(s, "/dev/null", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE, 0);
}

#ifdef HAVE_SECCOMP

/* What reading, sorting, threads and SQLite ask of the kernel; anything else does not exist. */
static const int CALLS[] = {
    /* memory; without the right to run it, see add_memory_rules() */
    SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(mincore),
    SCMP_SYS(msync),
    /* files */
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(write),
    SCMP_SYS(writev), SCMP_SYS(pwrite64), SCMP_SYS(pwritev), SCMP_SYS(open), SCMP_SYS(openat),
    SCMP_SYS(creat), SCMP_SYS(close), SCMP_SYS(lseek), SCMP_SYS(_llseek), SCMP_SYS(fcntl),
    SCMP_SYS(fcntl64), SCMP_SYS(flock), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(ftruncate),
    SCMP_SYS(ftruncate64), SCMP_SYS(fallocate), SCMP_SYS(fadvise64), SCMP_SYS(fadvise64_64),
    SCMP_SYS(readahead), SCMP_SYS(stat), SCMP_SYS(fstat), SCMP_SYS(lstat), SCMP_SYS(stat64),
    SCMP_SYS(fstat64), SCMP_SYS(lstat64), SCMP_SYS(newfstatat), SCMP_SYS(fstatat64),
    SCMP_SYS(statx), SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getcwd),
    SCMP_SYS(getdents64), SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(fchown), SCMP_SYS(fchmod),
    SCMP_SYS(umask), SCMP_SYS(dup), SCMP_SYS(dup2), SCMP_SYS(dup3), SCMP_SYS(pipe), SCMP_SYS(pipe2),
    SCMP_SYS(ioctl), SCMP_SYS(utimensat), SCMP_SYS(sync_file_range), SCMP_SYS(sync_file_range2),
    /* threads, time, waiting */
    SCMP_SYS(futex), SCMP_SYS(futex_time64), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
    SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_getparam),
    SCMP_SYS(sched_getscheduler), SCMP_SYS(membarrier), SCMP_SYS(getcpu), SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_gettime64), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep),
    SCMP_SYS(clock_nanosleep_time64), SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(ppoll_time64), SCMP_SYS(select), SCMP_SYS(pselect6),
    SCMP_SYS(restart_syscall), SCMP_SYS(eventfd2),
    /* itself */
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid),
    SCMP_SYS(getegid), SCMP_SYS(getrusage), SCMP_SYS(getrandom), SCMP_SYS(uname), SCMP_SYS(sysinfo),
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigreturn),
    SCMP_SYS(sigaltstack), SCMP_SYS(tgkill), SCMP_SYS(exit), SCMP_SYS(exit_group)
};

/* Calls that must fail as not permitted; the rest fails as not there, which libraries expect of
 * older kernels and get along with. */
static const int FORBIDDEN[] = { SCMP_SYS(execve),  SCMP_SYS(execveat), SCMP_SYS(fork),
                                 SCMP_SYS(vfork),   SCMP_SYS(socket),   SCMP_SYS(connect),
                                 SCMP_SYS(bind),    SCMP_SYS(ptrace),   SCMP_SYS(process_vm_readv),
                                 SCMP_SYS(kill),    SCMP_SYS(mount),    SCMP_SYS(bpf),
                                 SCMP_SYS(unshare), SCMP_SYS(setns),    SCMP_SYS(prctl) };

static bool add_memory_rules(scmp_filter_ctx filter)
{
    const struct scmp_arg_cmp not_executable = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, not_executable) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, not_executable) == 0;
}

/* New threads of this process alone. Arguments of clone3 cannot be seen: it is not there, and the C
 * library takes clone. */
static bool add_thread_rules(scmp_filter_ctx filter)
{
    const struct scmp_arg_cmp thread = SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD);
    const struct scmp_arg_cmp own_limits = SCMP_A2(SCMP_CMP_EQ, 0, 0);
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, thread) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, own_limits) == 0;
}

/* What a client asks for; sockets of no other kind, and none that listens. */
static bool add_connection_rules(scmp_filter_ctx filter)
{
    static const int CONNECTION_CALLS[] = {
        SCMP_SYS(connect),     SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(getsockname),
        SCMP_SYS(getpeername), SCMP_SYS(send),       SCMP_SYS(sendto),     SCMP_SYS(sendmsg),
        SCMP_SYS(sendmmsg),    SCMP_SYS(recv),       SCMP_SYS(recvfrom),   SCMP_SYS(recvmsg),
        SCMP_SYS(shutdown),    SCMP_SYS(socketpair)
    };
    const struct scmp_arg_cmp ipv4 = SCMP_A0(SCMP_CMP_EQ, AF_INET);
    const struct scmp_arg_cmp ipv6 = SCMP_A0(SCMP_CMP_EQ, AF_INET6);
    bool good = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, ipv4) == 0 &&
                seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, ipv6) == 0;
    for (size_t i = 0; good && i < sizeof CONNECTION_CALLS / sizeof *CONNECTION_CALLS; i++)
        good = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CONNECTION_CALLS[i], 0) == 0;
    return good;
}

static bool filter_calls(bool connects)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (filter == NULL)
        return false;
    bool good = add_memory_rules(filter) && add_thread_rules(filter) &&
                (!connects || add_connection_rules(filter));
    for (size_t i = 0; good && i < sizeof CALLS / sizeof *CALLS; i++)
        good = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALLS[i], 0) == 0;
    for (size_t i = 0; good && i < sizeof FORBIDDEN / sizeof *FORBIDDEN; i++)
        if (!connects || (FORBIDDEN[i] != SCMP_SYS(socket) && FORBIDDEN[i] != SCMP_SYS(connect)))
            good = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), FORBIDDEN[i], 0) == 0;
    good = good && seccomp_load(filter) == 0;
    seccomp_release(filter);
    return good;
}

#else

static bool filter_calls(bool connects)
{
    (void)connects;
    return false;
}

#endif

/* Keeps, of what root may do, reading and writing files whoever owns them. */
static bool drop_privileges(void)
{
    static const uint32_t KEPT = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };
    if (syscall(SYS_capget, &header, sets) != 0)
        return false;
    bool had_more = (sets[0].permitted & ~KEPT) != 0 || sets[1].permitted != 0;
    sets[0].permitted &= KEPT;
    sets[0].effective &= KEPT;
    sets[0].inheritable = 0;
    sets[1] = (struct __user_cap_data_struct){ 0 };
    return had_more && syscall(SYS_capset, &header, sets) == 0;
}

struct sandbox_state sandbox_enter(struct sandbox *s, bool files_too)
{
    struct sandbox_state state = { 0 };
    if (SANITIZER_BUILD) {
        state.why = "this is a sanitizer build";
        return state;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        state.why = "the kernel does not allow it";
        return state;
    }
    state.privileges = drop_privileges();
    if (files_too && s->version > 0) {
        allow_system(s);
        if (syscall(SYS_landlock_restrict_self, s->ruleset, 0) == 0)
            state.files = s->version;
    }
    state.calls = filter_calls(s->connects);
    if (files_too && state.files == 0)
        state.why = "this kernel has no Landlock";
#ifndef HAVE_SECCOMP
    state.why = "built without libseccomp";
#endif
    return state;
}

void sandbox_say(struct sandbox_state state, struct text *ret_line)
{
    text_add(ret_line, "sandbox:");
    const char *before = " ";
    if (state.files > 0) {
        text_addf(ret_line, "%sfiles (Landlock %d)", before, state.files);
        before = ", ";
    }
    if (state.calls) {
        text_addf(ret_line, "%ssystem calls (seccomp)", before);
        before = ", ";
    }
    if (state.privileges)
        text_addf(ret_line, "%sprivileges dropped", before);
    else if (state.files == 0 && !state.calls)
        text_add(ret_line, " none");
    if (state.why != NULL)
        text_addf(ret_line, "; %s", state.why);
}
