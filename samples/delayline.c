/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link with a fixed delay between two network namespaces, in user space: makes a TUN device in
 * each of them and copies IP packets from one to the other after the same time, in order. For
 * machines whose kernel has no network emulation.
 *
 * usage: delayline NAMESPACE_A NAMESPACE_B DEVICE ONE_WAY_DELAY_US
 *
 * Runs until it is killed; the devices go with it. Prints "ready" once both exist.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    PACKET_SIZE_MAX = 2048, /* above the MTU of a TUN device, 1500 */
    QUEUE_LEN = 4096,       /* packets on the way in one direction; more are lost, as on a link */
    REAL_TIME_PRIORITY = 20,
};

struct packet {
    int64_t due_ns;
    size_t len;
    uint8_t data[PACKET_SIZE_MAX];
};

/* Packets on the way in one direction: a ring in order of arrival, which is that of departure. */
struct queue {
    struct packet *packets;
    size_t first, count;
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "delayline: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* Makes a TUN device inside a named network namespace; the process stays there. */
static int open_device(const char *namespace, const char *device)
{
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
        die(path);
    close(fd);

    int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tun < 0)
        die("/dev/net/tun");
    struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", device);
    if (ioctl(tun, TUNSETIFF, &request) != 0)
        die(device);
    return tun;
}

/* Takes all packets that wait at a device. */
static void take(int fd, struct queue *q, int64_t delay_ns)
{
    for (;;) {
        struct packet *p = &q->packets[(q->first + q->count) % QUEUE_LEN];
        uint8_t lost[PACKET_SIZE_MAX];
        bool is_full = q->count == QUEUE_LEN;
        ssize_t len = read(fd, is_full ? lost : p->data, PACKET_SIZE_MAX);
        if (len <= 0)
            return;
        if (is_full)
            continue;
        p->len = (size_t)len;
        p->due_ns = now_ns() + delay_ns;
        q->count++;
    }
}

/* Hands over all packets whose time has come. */
static void give(int fd, struct queue *q)
{
    while (q->count && q->packets[q->first].due_ns <= now_ns()) {
        const struct packet *p = &q->packets[q->first];
        if (write(fd, p->data, p->len) < 0 && errno == EAGAIN)
            return;
        q->first = (q->first + 1) % QUEUE_LEN;
        q->count--;
    }
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fputs("usage: delayline NAMESPACE_A NAMESPACE_B DEVICE ONE_WAY_DELAY_US\n", stderr);
        return EXIT_FAILURE;
    }
    int64_t delay_ns = strtoll(argv[4], NULL, 10) * 1000;
    int fds[2] = { open_device(argv[1], argv[3]), open_device(argv[2], argv[3]) };
    struct queue queues[2] = { 0 };
    for (int side = 0; side < 2; side++) {
        queues[side].packets = calloc(QUEUE_LEN, sizeof *queues[side].packets);
        if (!queues[side].packets)
            die("memory");
    }
    /* Without the right to it the line works too, with more jitter. */
    struct sched_param priority = { .sched_priority = REAL_TIME_PRIORITY };
    (void)sched_setscheduler(0, SCHED_FIFO, &priority);
    puts("ready");
    fflush(stdout);

    for (;;) {
        int64_t next_ns = INT64_MAX;
        for (int side = 0; side < 2; side++) {
            take(fds[side], &queues[side], delay_ns);
            give(fds[1 - side], &queues[side]);
            if (queues[side].count && queues[side].packets[queues[side].first].due_ns < next_ns)
                next_ns = queues[side].packets[queues[side].first].due_ns;
        }
        struct timespec wait = { 3600, 0 };
        if (next_ns != INT64_MAX) {
            int64_t left_ns = next_ns - now_ns();
            if (left_ns < 0)
                left_ns = 0;
            wait = (struct timespec){ left_ns / 1000000000, left_ns % 1000000000 };
        }
        struct pollfd polls[2] = { { .fd = fds[0], .events = POLLIN },
                                   { .fd = fds[1], .events = POLLIN } };
        if (ppoll(polls, 2, &wait, NULL) < 0 && errno != EINTR)
            die("poll");
    }
}
