/* SPDX-License-Identifier: Apache-2.0 */
/* What is given up is given up for good: each case tries it in a child of its own. */
#include "sandbox.h"

#include "capture_builder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_ROOM = 32, NOT_IN_FORCE = 100 };

static char directory[PATH_SIZE], inside[PATH_SIZE + NAME_ROOM], outside[PATH_SIZE + NAME_ROOM];

static const char *path_of(const char *in, const char *name)
{
    static char path[PATH_SIZE + 2 * NAME_ROOM];
    snprintf(path, sizeof path, "%s/%s", in, name);
    return path;
}

static void make_files(void)
{
    static const uint8_t BYTES[] = "bytes";
    test_directory(directory);
    snprintf(inside, sizeof inside, "%s/in", directory);
    snprintf(outside, sizeof outside, "%s/out", directory);
    cr_assert_eq(mkdir(inside, 0700), 0);
    cr_assert_eq(mkdir(outside, 0700), 0);
    write_file(path_of(outside, "named"), (struct bytes){ BYTES, sizeof BYTES });
    write_file(path_of(outside, "other"), (struct bytes){ BYTES, sizeof BYTES });
}

static void remove_files(void)
{
    remove_directory(directory);
}

TestSuite(sandbox, .init = make_files, .fini = remove_files, .timeout = 60);

static struct sandbox_state enter(bool files_too)
{
    struct sandbox *s = sandbox_prepare();
    if (s == NULL)
        abort();
    sandbox_may_read(s, path_of(outside, "named"));
    sandbox_may_read(s, "/there/is/no/such/file");
    sandbox_may_write_in(s, inside);
    struct sandbox_state state = sandbox_enter(s, files_too);
    sandbox_close(s);
    return state;
}

/* Runs what gives the number of the first step that was not as it should be, 0 for none. */
static void expect_confined(int (*steps)(void))
{
    int status;
    pid_t child = fork();
    cr_assert_neq(child, -1);
    if (child == 0)
        _exit(steps());
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) == NOT_IN_FORCE)
        cr_skip_test("nothing is in force in this build or on this kernel");
    cr_expect_eq(WEXITSTATUS(status), 0, "step %d", WEXITSTATUS(status));
}

/* errno of opening a file in a directory, 0 when it opens. */
static int open_error(const char *in, const char *name, int flags)
{
    int fd = open(path_of(in, name), flags, 0600);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int open_files(void)
{
    if (enter(true).files == 0)
        return NOT_IN_FORCE;
    if (open_error(outside, "named", O_RDONLY) != 0)
        return 1;
    if (open_error(outside, "named", O_WRONLY) != EACCES)
        return 2;
    if (open_error(outside, "other", O_RDONLY) != EACCES)
        return 3;
    if (open_error(outside, "new", O_WRONLY | O_CREAT) != EACCES)
        return 4;
    return open_error("/etc", "passwd", O_RDONLY) == EACCES ? 0 : 5;
}

Test(sandbox, only_named_files_open)
{
    expect_confined(open_files);
}

static int write_inside(void)
{
    (void)enter(true);
    if (open_error(inside, "new", O_RDWR | O_CREAT) != 0)
        return 1;
    if (open_error(inside, "new", O_RDWR | O_TRUNC) != 0)
        return 2;
    return unlink(path_of(inside, "new")) == 0 ? 0 : 3;
}

Test(sandbox, the_directory_of_the_database_can_be_written)
{
    expect_confined(write_inside);
}

static int reach_out(void)
{
    char *const arguments[] = { "/bin/true", NULL };
    if (!enter(false).calls)
        return NOT_IN_FORCE;
    if (execv(arguments[0], arguments) != -1 || errno != EPERM)
        return 1;
    if (socket(AF_INET, SOCK_STREAM, 0) != -1 || errno != EPERM)
        return 2;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != -1 || errno != EPERM)
        return 3;
    if (fork() != -1)
        return 4;
    if (kill(getppid(), 0) != -1)
        return 5;
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        return 6;
    return open_error(outside, "other", O_RDONLY) == 0 ? 0 : 7; /* files were to stay open */
}

Test(sandbox, programs_network_and_other_processes_are_out_of_reach)
{
    expect_confined(reach_out);
}

static int be_a_client(void)
{
    char *const arguments[] = { "/bin/true", NULL };
    struct sandbox *s = sandbox_prepare();
    if (s == NULL)
        abort();
    sandbox_may_connect(s);
    struct sandbox_state state = sandbox_enter(s, true);
    sandbox_close(s);
    if (!state.calls)
        return NOT_IN_FORCE;
    struct sockaddr_in discard = { .sin_family = AF_INET,
                                   .sin_port = htons(9),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct sockaddr *address = (const struct sockaddr *)&discard;
    int client = socket(AF_INET, SOCK_STREAM, 0);
    if (client < 0)
        return 1;
    if (connect(client, address, sizeof discard) != 0 && errno != ECONNREFUSED)
        return 2;
    if (bind(client, address, sizeof discard) != -1 || errno != EPERM)
        return 3;
    if (listen(client, 1) != -1)
        return 4;
    if (socket(AF_UNIX, SOCK_STREAM, 0) != -1 || socket(AF_PACKET, SOCK_RAW, 0) != -1)
        return 5;
    if (execv(arguments[0], arguments) != -1 || errno != EPERM)
        return 6;
    return state.files == 0 || open_error("/etc", "passwd", O_RDONLY) == EACCES ? 0 : 7;
}

Test(sandbox, who_may_connect_is_a_client_and_no_server)
{
    expect_confined(be_a_client);
}

static void *same(void *argument)
{
    return argument;
}

static int start_thread(void)
{
    pthread_t thread;
    void *result = NULL;
    (void)enter(true);
    if (pthread_create(&thread, NULL, same, directory) != 0)
        return 1;
    return pthread_join(thread, &result) == 0 && result == directory ? 0 : 2;
}

Test(sandbox, threads_can_be_started_and_joined)
{
    expect_confined(start_thread);
}

static void expect_said(struct sandbox_state state, const char *line)
{
    struct text said = { 0 };
    sandbox_say(state, &said);
    cr_expect_str_eq(text_string(&said), line);
    text_done(&said);
}

Test(sandbox, what_is_in_force_is_said)
{
    expect_said((struct sandbox_state){ .files = 4, .calls = true, .privileges = true },
                "sandbox: files (Landlock 4), system calls (seccomp), privileges dropped");
    expect_said((struct sandbox_state){ .calls = true, .why = "this kernel has no Landlock" },
                "sandbox: system calls (seccomp); this kernel has no Landlock");
    expect_said((struct sandbox_state){ .why = "this is a sanitizer build" },
                "sandbox: none; this is a sanitizer build");
}
