/* SPDX-License-Identifier: Apache-2.0 */
#include "thread.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>

unsigned thread_cpus(void)
{
    cpu_set_t set; /* fails on machines of more CPUs than it holds, which are enough anyhow */
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return CPU_SETSIZE;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (unsigned)count;
}

bool thread_start(pthread_t *ret_thread, void *(*run)(void *argument), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(ret_thread, NULL, run, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

bool thread_wait_for_bytes(int fd, int stop_event)
{
    struct pollfd events[] = { { .fd = fd, .events = POLLIN },
                               { .fd = stop_event, .events = POLLIN } };
    if (stop_event < 0)
        return true;
    while (poll(events, 2, -1) < 0 && errno == EINTR)
        continue;
    return events[1].revents == 0;
}
