/* SPDX-License-Identifier: Apache-2.0 */
#ifndef THREAD_H
#define THREAD_H
/* What all threads of the program have in common. */
#include <pthread.h>
#include <stdbool.h>

/* CPUs that this process may use, at least 1. */
unsigned thread_cpus(void);

/*
 * Starts a thread that takes no signals: these stay the business of the one that runs the program.
 * False when there is none to be had; the caller then does the work itself. Who starts it joins it.
 */
bool thread_start(pthread_t *ret_thread, void *(*run)(void *argument), void *argument);

/*
 * Waits until fd can be read, or is at its end. False when stop_event, an eventfd, can be read: the
 * thread is to stop waiting. Without one (-1) it does not wait, but leaves that to read(2).
 */
bool thread_wait_for_bytes(int fd, int stop_event);

#endif
