/*
 * A weak link of a GPU trains down when it is first loaded, as marginal signals do: nvml/gpuN/retrains holds what is left,
 * "8 5" for 8 lanes of generation 5. Both ends then show it, in /sys, in configuration space and in NVML, until a reboot.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "node.h"

#define LINK_STATUS 0x72

static const char *const SPEEDS[] = {
    "", "2.5 GT/s PCIe\n", "5.0 GT/s PCIe\n", "8.0 GT/s PCIe\n", "16.0 GT/s PCIe\n", "32.0 GT/s PCIe\n", "64.0 GT/s PCIe\n"
};

static void train_end(const char *address, const char *end, unsigned width, unsigned generation)
{
    char lanes[16];
    uint16_t status;
    int fd = node_open(O_RDWR, "root/sys/bus/pci/devices/%s/%sconfig", address, end);
    snprintf(lanes, sizeof lanes, "%u\n", width);
    node_keep(lanes, "root/sys/bus/pci/devices/%s/%scurrent_link_width", address, end);
    node_keep(SPEEDS[generation], "root/sys/bus/pci/devices/%s/%scurrent_link_speed", address, end);
    if (fd < 0)
        return;
    if (pread(fd, &status, sizeof status, LINK_STATUS) == sizeof status) {
        status = (uint16_t)((status & ~0x3FFu) | generation | width << 4);
        if (pwrite(fd, &status, sizeof status, LINK_STATUS) != sizeof status) { /* then this end does not show it */
        }
    }
    close(fd);
}

void retrain(int gpu)
{
    char text[TEXT], address[TEXT], number[16];
    unsigned width, generation;
    if (!node_text(text, "nvml/gpu%d/retrains", gpu) || sscanf(text, "%u %u", &width, &generation) != 2)
        return;
    if (!node_address(gpu, address) || generation < 1 || generation > 6 || width < 1 || width > 16)
        return;
    train_end(address, "", width, generation);
    train_end(address, "../", width, generation);
    snprintf(number, sizeof number, "%u\n", width);
    node_keep(number, "nvml/gpu%d/pcie_width", gpu);
    snprintf(number, sizeof number, "%u\n", generation);
    node_keep(number, "nvml/gpu%d/pcie_gen", gpu);
}
