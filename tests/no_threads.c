/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to load before the program (LD_PRELOAD), with which no thread can be started, as where
 * a limit of processes is reached.
 */
#include <errno.h>
#include <pthread.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    (void)thread;
    (void)attributes;
    (void)run;
    (void)argument;
    return EAGAIN;
}
