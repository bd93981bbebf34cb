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

#endif
