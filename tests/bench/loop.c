/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a capture with libpcap and does nothing with it: what every program that uses libpcap pays
 * at least, hence the unit in which tests/bench/run measures.
 *
 * usage: loop FILE
 */
#include <pcap.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char error[PCAP_ERRBUF_SIZE];
    if (argc != 2) {
        fputs("usage: loop FILE\n", stderr);
        return 1;
    }
    pcap_t *capture = pcap_open_offline(argv[1], error);
    if (capture == NULL) {
        fprintf(stderr, "loop: %s\n", error);
        return 2;
    }
    unsigned long long packets = 0, bytes = 0;
    struct pcap_pkthdr *header;
    const u_char *data;
    while (pcap_next_ex(capture, &header, &data) == 1) {
        packets++;
        bytes += header->caplen;
    }
    pcap_close(capture);
    printf("%llu packets, %llu bytes\n", packets, bytes);
    return 0;
}
