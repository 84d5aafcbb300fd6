/*
 * The lab's NVML: answers from small files, writes what is set into them. attributes.py says which file is what.
 *
 * The state folder is $HWCHECK_LAB_NVML, or "nvml-state" beside this library, or /run/hwcheck-lab/nvml. All functions of NVML
 * that are not here are in generated stubs that answer NOT_SUPPORTED.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load.h"
#include "structs.h"

#define EXPORT __attribute__((visibility("default")))
#define TEXT 4096
#define MOST_GPUS 64

typedef unsigned Ret;
typedef struct { int index; } Gpu;

enum {
    OK, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 6, INSUFFICIENT_SIZE, GPU_IS_LOST = 15,
    RESET_REQUIRED, OPERATING_SYSTEM, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999
};
static const char *const NAMES[] = {
    "SUCCESS", "UNINITIALIZED", "INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION", "ALREADY_INITIALIZED", "NOT_FOUND",
    "INSUFFICIENT_SIZE", "INSUFFICIENT_POWER", "DRIVER_NOT_LOADED", "TIMEOUT", "IRQ_ISSUE", "LIBRARY_NOT_FOUND",
    "FUNCTION_NOT_FOUND", "CORRUPTED_INFOROM", "GPU_IS_LOST", "RESET_REQUIRED", "OPERATING_SYSTEM",
    "LIB_RM_VERSION_MISMATCH", "IN_USE", "MEMORY", "NO_DATA", "VGPU_ECC_NOT_SUPPORTED", "INSUFFICIENT_RESOURCES",
    "FREQ_NOT_SUPPORTED", "ARGUMENT_VERSION_MISMATCH", "DEPRECATED", "NOT_READY", "GPU_NOT_FOUND", "INVALID_STATE"
};

static Gpu gpus[MOST_GPUS];
static char state[TEXT];
static int initialized;

/* ---- files ------------------------------------------------------------------------------------------------------ */

static void find_state(void)
{
    Dl_info self;
    const char *given = getenv("HWCHECK_LAB_NVML");
    char *slash;
    if (state[0])
        return;
    if (given && *given) {
        snprintf(state, sizeof state, "%s", given);
        return;
    }
    if (dladdr((void *)find_state, &self) && (slash = strrchr(self.dli_fname, '/'))) {
        snprintf(state, sizeof state, "%.*s/nvml-state", (int)(slash - self.dli_fname), self.dli_fname);
        if (access(state, F_OK) == 0)
            return;
    }
    snprintf(state, sizeof state, "/run/hwcheck-lab/nvml");
}

static void path_of(char *path, size_t size, const Gpu *gpu, const char *name)
{
    if (gpu)
        snprintf(path, size, "%.3000s/gpu%d/%s", state, gpu->index, name);
    else
        snprintf(path, size, "%.3000s/%s", state, name);
}

static Ret code_of(const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (end != text)
        return (Ret)number;
    if (!strncmp(text, "NVML_ERROR_", 11))
        text += 11;
    for (unsigned i = 1; i < sizeof NAMES / sizeof *NAMES; i++)
        if (!strcmp(text, NAMES[i]))
            return i;
    return UNKNOWN;
}

/* Reads an attribute into text; no file is NOT_SUPPORTED, a text that begins with ! is the error it names. */
static Ret get_text(const Gpu *gpu, const char *name, char *text)
{
    char path[TEXT];
    ssize_t length;
    int fd;
    path_of(path, sizeof path, gpu, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? NOT_SUPPORTED : NO_PERMISSION;
    length = read(fd, text, TEXT - 1);
    close(fd);
    if (length < 0)
        return UNKNOWN;
    while (length && (text[length - 1] == '\n' || text[length - 1] == ' '))
        length--;
    text[length] = 0;
    return text[0] == '!' ? code_of(text + 1) : OK;
}

static Ret get_numbers(const Gpu *gpu, const char *name, unsigned long long *values, int most, int *count)
{
    char text[TEXT], *at = text, *end;
    Ret ret = get_text(gpu, name, text);
    *count = 0;
    while (!ret && *count < most) {
        unsigned long long value = strtoull(at, &end, 0);
        if (end == at)
            break;
        values[(*count)++] = value;
        at = end;
    }
    return ret ? ret : *count ? OK : UNKNOWN;
}

static Ret get_long(const Gpu *gpu, const char *name, unsigned long long *value)
{
    int count;
    return get_numbers(gpu, name, value, 1, &count);
}

static Ret get_number(const Gpu *gpu, const char *name, unsigned *value)
{
    unsigned long long number;
    Ret ret = get_long(gpu, name, &number);
    if (!ret)
        *value = (unsigned)number;
    return ret;
}

static Ret put_text(const Gpu *gpu, const char *name, const char *text)
{
    char path[TEXT], fresh[TEXT + 16];
    int fd;
    path_of(path, sizeof path, gpu, name);
    snprintf(fresh, sizeof fresh, "%s.%d", path, (int)getpid());
    fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return errno == EACCES || errno == EPERM || errno == EROFS ? NO_PERMISSION : UNKNOWN;
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) || rename(fresh, path)) {
        unlink(fresh);
        return OPERATING_SYSTEM;
    }
    return OK;
}

static Ret drop(const Gpu *gpu, const char *name)
{
    char path[TEXT];
    path_of(path, sizeof path, gpu, name);
    return unlink(path) && errno != ENOENT ? NO_PERMISSION : OK;
}

/* ---- faults ----------------------------------------------------------------------------------------------------- */

static void hang(void)
{
    for (;;)
        pause();
}

/* The worst that a user-space library can do: signals blocked, and another process group holds every open pipe. */
static void hang_hard(const char *seconds)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    if (fork() == 0) {
        setsid();
        sleep(atoi(seconds) > 0 ? (unsigned)atoi(seconds) : 30);
        _exit(0);
    }
    hang();
}

static Ret fault_of(const Gpu *gpu, const char *function)
{
    char name[256], text[TEXT];
    snprintf(name, sizeof name, "faults/%s", function);
    if (get_text(gpu, name, text) == NOT_SUPPORTED)
        return OK;
    if (!strcmp(text, "hang"))
        hang();
    if (!strncmp(text, "hang_hard", 9))
        hang_hard(text + 9);
    return code_of(text[0] == '!' ? text + 1 : text);
}

static int is_there(const Gpu *gpu, const char *name)
{
    char path[TEXT];
    path_of(path, sizeof path, gpu, name);
    return access(path, F_OK) == 0;
}

static Ret guard(const Gpu *gpu, const char *function, int identity)
{
    char text[TEXT];
    Ret ret;
    if (!initialized)
        return UNINITIALIZED;
    if (is_there(NULL, "faults") && (ret = fault_of(NULL, function)))
        return ret;
    if (!gpu)
        return OK;
    if (gpu < gpus || gpu >= gpus + MOST_GPUS)
        return INVALID_ARGUMENT;
    if (is_there(gpu, "hang"))
        hang();
    if (get_text(gpu, "hang_hard", text) == OK)
        hang_hard(text);
    if (is_there(gpu, "faults") && (ret = fault_of(gpu, function)))
        return ret;
    if (is_there(gpu, "lost"))
        return GPU_IS_LOST;
    return !identity && is_there(gpu, "needs_reset") ? RESET_REQUIRED : OK;
}

#define GUARD(gpu) do { Ret guarded = guard(gpu, __func__, 0); if (guarded) return guarded; } while (0)
#define GUARD_IDENTITY(gpu) do { Ret guarded = guard(gpu, __func__, 1); if (guarded) return guarded; } while (0)
#define TRY(what) do { Ret tried = (what); if (tried) return tried; } while (0)
#define VERSIONED(info, number) do { if ((info)->version != (sizeof *(info) | (number) << 24)) return ARGUMENT_VERSION_MISMATCH; } while (0)

/* ---- contexts: who has one open holds a lock on a file that is named as the process --------------------------------- */

/* Gives the processes with a context; a file that nobody has locked is of one that was killed. Returns how many. */
static int contexts_of(const Gpu *gpu, unsigned long long *pids, int most)
{
    char path[TEXT];
    struct dirent *entry;
    DIR *folder;
    int count = 0;
    path_of(path, sizeof path, gpu, "contexts");
    folder = opendir(path);
    while (folder && count < most && (entry = readdir(folder))) {
        int fd = entry->d_name[0] == '.' ? -1 : openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (flock(fd, LOCK_EX | LOCK_NB))
            pids[count++] = strtoull(entry->d_name, NULL, 10);
        close(fd);
    }
    if (folder)
        closedir(folder);
    return count;
}

static int is_busy(const Gpu *gpu)
{
    unsigned long long pid;
    return contexts_of(gpu, &pid, 1);
}

/* ---- the library and the node ------------------------------------------------------------------------------------ */

EXPORT Ret nvmlInit_v2(void)
{
    char text[TEXT];
    Ret ret;
    for (int i = 0; i < MOST_GPUS; i++)
        gpus[i].index = i;
    find_state();
    if (is_there(NULL, "hang"))
        hang();
    if (get_text(NULL, "hang_hard", text) == OK)
        hang_hard(text);
    if ((ret = fault_of(NULL, "nvmlInit_v2")))
        return ret;
    initialized = 1;
    return OK;
}

EXPORT Ret nvmlInit(void) { return nvmlInit_v2(); }
EXPORT Ret nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
EXPORT Ret nvmlShutdown(void) { initialized = 0; return OK; }

EXPORT const char *nvmlErrorString(Ret code)
{
    return code < sizeof NAMES / sizeof *NAMES ? NAMES[code] : "Unknown Error";
}

static Ret give_text(const Gpu *gpu, const char *name, char *out, unsigned length)
{
    char text[TEXT];
    TRY(get_text(gpu, name, text));
    if (strlen(text) + 1 > length)
        return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return OK;
}

EXPORT Ret nvmlSystemGetDriverVersion(char *out, unsigned length) { GUARD(NULL); return give_text(NULL, "driver_version", out, length); }
EXPORT Ret nvmlSystemGetNVMLVersion(char *out, unsigned length) { GUARD(NULL); return give_text(NULL, "nvml_version", out, length); }
EXPORT Ret nvmlSystemGetCudaDriverVersion_v2(int *out) { GUARD(NULL); return get_number(NULL, "cuda_version", (unsigned *)out); }
EXPORT Ret nvmlSystemGetCudaDriverVersion(int *out) { return nvmlSystemGetCudaDriverVersion_v2(out); }

EXPORT Ret nvmlSystemGetProcessName(unsigned pid, char *out, unsigned length)
{
    char text[TEXT], *line, *next;
    GUARD(NULL);
    TRY(get_text(NULL, "process_name", text));
    for (line = text; line; line = next) {
        char *end;
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (strtoul(line, &end, 10) == pid && *end == ' ') {
            snprintf(out, length, "%s", end + 1);
            return OK;
        }
    }
    return NOT_FOUND;
}

EXPORT Ret nvmlDeviceGetCount_v2(unsigned *count)
{
    GUARD(NULL);
    for (*count = 0; *count < MOST_GPUS && is_there(&gpus[*count], ""); ++*count)
        ;
    return OK;
}

EXPORT Ret nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

EXPORT Ret nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu **out)
{
    unsigned count;
    TRY(nvmlDeviceGetCount_v2(&count));
    if (index >= count)
        return INVALID_ARGUMENT;
    TRY(is_there(&gpus[index], "faults") ? fault_of(&gpus[index], __func__) : OK);
    *out = &gpus[index];
    return OK;
}

EXPORT Ret nvmlDeviceGetHandleByIndex(unsigned index, Gpu **out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }

static Ret by_text(const char *name, const char *wanted, Gpu **out)
{
    unsigned count;
    char text[TEXT];
    TRY(nvmlDeviceGetCount_v2(&count));
    for (unsigned i = 0; i < count; i++)
        if (get_text(&gpus[i], name, text) == OK && !strcasecmp(text, wanted)) {
            *out = &gpus[i];
            return OK;
        }
    return NOT_FOUND;
}

EXPORT Ret nvmlDeviceGetHandleByUUID(const char *uuid, Gpu **out) { return by_text("uuid", uuid, out); }
EXPORT Ret nvmlDeviceGetHandleByPciBusId_v2(const char *address, Gpu **out) { return by_text("pci_bus_id", address, out); }
EXPORT Ret nvmlDeviceGetHandleBySerial(const char *serial, Gpu **out) { return by_text("serial", serial, out); }

/* ---- one file, one answer ---------------------------------------------------------------------------------------- */

#define IDENTITY_TEXT(function, name) \
    EXPORT Ret function(Gpu *gpu, char *out, unsigned length) { GUARD_IDENTITY(gpu); return give_text(gpu, name, out, length); }
#define IDENTITY_NUMBER(function, name) \
    EXPORT Ret function(Gpu *gpu, unsigned *out) { GUARD_IDENTITY(gpu); return get_number(gpu, name, out); }
#define NUMBER(function, name) \
    EXPORT Ret function(Gpu *gpu, unsigned *out) { GUARD(gpu); return get_number(gpu, name, out); }
#define TWO_NUMBERS(function, first, second) \
    EXPORT Ret function(Gpu *gpu, unsigned *a, unsigned *b) { GUARD(gpu); TRY(get_number(gpu, first, a)); return get_number(gpu, second, b); }

IDENTITY_TEXT(nvmlDeviceGetUUID, "uuid")
IDENTITY_TEXT(nvmlDeviceGetSerial, "serial")
IDENTITY_TEXT(nvmlDeviceGetName, "name")
IDENTITY_TEXT(nvmlDeviceGetBoardPartNumber, "part_number")
IDENTITY_TEXT(nvmlDeviceGetVbiosVersion, "vbios")
IDENTITY_TEXT(nvmlDeviceGetInforomImageVersion, "inforom")
IDENTITY_NUMBER(nvmlDeviceGetMinorNumber, "minor")
IDENTITY_NUMBER(nvmlDeviceGetArchitecture, "architecture")
IDENTITY_NUMBER(nvmlDeviceGetModuleId, "module_id")
IDENTITY_NUMBER(nvmlDeviceGetNumaNodeId, "numa_node")
NUMBER(nvmlDeviceGetPersistenceMode, "persistence")
NUMBER(nvmlDeviceGetVirtualizationMode, "virtualization_mode")
NUMBER(nvmlDeviceGetComputeMode, "compute_mode")
NUMBER(nvmlDeviceGetPerformanceState, "performance_state")
NUMBER(nvmlDeviceGetMemoryBusWidth, "memory_bus_width")
NUMBER(nvmlDeviceGetPowerManagementLimit, "power_limit")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "power_default")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_gen_max")
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie_gen_device_max")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")
NUMBER(nvmlDeviceGetPcieReplayCounter, "pcie_replays")
TWO_NUMBERS(nvmlDeviceGetMigMode, "mig_mode", "mig_pending")
TWO_NUMBERS(nvmlDeviceGetEccMode, "ecc_mode", "ecc_pending")
TWO_NUMBERS(nvmlDeviceGetPowerManagementLimitConstraints, "power_min", "power_max")

EXPORT Ret nvmlDeviceGetIndex(Gpu *gpu, unsigned *out) { GUARD_IDENTITY(gpu); *out = (unsigned)gpu->index; return OK; }
EXPORT Ret nvmlDeviceGetGspFirmwareVersion(Gpu *gpu, char *out) { GUARD(gpu); return give_text(gpu, "gsp_firmware", out, 64); }

EXPORT Ret nvmlDeviceGetEnforcedPowerLimit(Gpu *gpu, unsigned *out)
{
    GUARD(gpu);
    return get_number(gpu, is_there(gpu, "power_enforced") ? "power_enforced" : "power_limit", out);
}


EXPORT Ret nvmlDeviceGetTemperature(Gpu *gpu, unsigned sensor, unsigned *out)
{
    GUARD(gpu);
    return sensor ? INVALID_ARGUMENT : get_number(gpu, "temperature", out);
}

EXPORT Ret nvmlDeviceGetTemperatureThreshold(Gpu *gpu, unsigned threshold, unsigned *out)
{
    GUARD(gpu);
    return threshold == 2 ? get_number(gpu, "temperature_memory_max", out) : NOT_SUPPORTED;
}

EXPORT Ret nvmlDeviceGetRemappedRows(Gpu *gpu, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failure)
{
    GUARD(gpu);
    TRY(get_number(gpu, "remap_corrected", corrected));
    TRY(get_number(gpu, "remap_uncorrected", uncorrected));
    TRY(get_number(gpu, "remap_pending", pending));
    return get_number(gpu, "remap_failure", failure);
}

/* ---- structs ----------------------------------------------------------------------------------------------------- */

EXPORT Ret nvmlDeviceGetPciInfo_v3(Gpu *gpu, PciInfo *info)
{
    char text[TEXT];
    GUARD_IDENTITY(gpu);
    TRY(get_text(gpu, "pci_bus_id", text));
    memset(info, 0, sizeof *info);
    if (sscanf(text, "%x:%x:%x", &info->domain, &info->bus, &info->device) != 3)
        return UNKNOWN;
    snprintf(info->busId, sizeof info->busId, "%.31s", text);
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04X:%02X:%02X.0", info->domain & 0xFFFF, info->bus & 0xFF, info->device & 0xFF);
    TRY(get_number(gpu, "pci_device_id", &info->pciDeviceId));
    return get_number(gpu, "pci_subsystem_id", &info->pciSubSystemId);
}

EXPORT Ret nvmlDeviceGetMemoryInfo_v2(Gpu *gpu, Memory_v2 *info)
{
    GUARD(gpu);
    VERSIONED(info, 2);
    TRY(get_long(gpu, "memory_total", &info->total));
    TRY(get_long(gpu, "memory_reserved", &info->reserved));
    TRY(get_long(gpu, "memory_used", &info->used));
    info->free = info->total - info->reserved - info->used;
    return OK;
}

EXPORT Ret nvmlDeviceGetBAR1MemoryInfo(Gpu *gpu, BAR1Memory *info)
{
    GUARD(gpu);
    TRY(get_long(gpu, "bar1_total", &info->bar1Total));
    info->bar1Free = info->bar1Total;
    info->bar1Used = 0;
    return OK;
}

EXPORT Ret nvmlDeviceGetUtilizationRates(Gpu *gpu, Utilization *info)
{
    GUARD(gpu);
    info->memory = 0;
    TRY(get_number(gpu, "utilization", &info->gpu));
    if (is_busy(gpu))
        info->gpu = info->memory = 100;
    return OK;
}

EXPORT Ret nvmlDeviceGetSramEccErrorStatus(Gpu *gpu, EccSramErrorStatus_v1 *info)
{
    GUARD(gpu);
    VERSIONED(info, 1);
    TRY(get_long(gpu, "ecc_aggregate_sram_parity", &info->aggregateUncParity));
    TRY(get_long(gpu, "ecc_aggregate_sram_secded", &info->aggregateUncSecDed));
    TRY(get_long(gpu, "ecc_aggregate_sram_corrected", &info->aggregateCor));
    TRY(get_long(gpu, "ecc_volatile_sram_parity", &info->volatileUncParity));
    TRY(get_long(gpu, "ecc_volatile_sram_secded", &info->volatileUncSecDed));
    TRY(get_long(gpu, "ecc_volatile_sram_corrected", &info->volatileCor));
    return get_number(gpu, "ecc_sram_threshold", &info->bThresholdExceeded);
}

EXPORT Ret nvmlDeviceGetRepairStatus(Gpu *gpu, RepairStatus_v1 *info)
{
    GUARD(gpu);
    VERSIONED(info, 1);
    TRY(get_number(gpu, "repair_channel_pending", &info->bChannelRepairPending));
    return get_number(gpu, "repair_tpc_pending", &info->bTpcRepairPending);
}

EXPORT Ret nvmlDeviceGetUnrepairableMemoryFlag_v1(Gpu *gpu, UnrepairableMemory_v1 *info) { GUARD(gpu); return get_number(gpu, "unrepairable", &info->bUnrepairableMemory); }

EXPORT Ret nvmlDeviceGetRowRemapperHistogram(Gpu *gpu, RowRemapperHistogramValues *info)
{
    unsigned long long banks[5];
    int count;
    GUARD(gpu);
    TRY(get_numbers(gpu, "remap_banks", banks, 5, &count));
    if (count != 5)
        return UNKNOWN;
    *info = (RowRemapperHistogramValues){(unsigned)banks[0], (unsigned)banks[1], (unsigned)banks[2], (unsigned)banks[3], (unsigned)banks[4]};
    return OK;
}

EXPORT Ret nvmlDeviceGetMarginTemperature(Gpu *gpu, MarginTemperature_v1 *info)
{
    GUARD(gpu);
    VERSIONED(info, 1);
    return get_number(gpu, "temperature_margin", (unsigned *)&info->marginTemperature);
}

EXPORT Ret nvmlDeviceGetAddressingMode(Gpu *gpu, DeviceAddressingMode_v1 *info)
{
    GUARD(gpu);
    VERSIONED(info, 1);
    return get_number(gpu, "addressing_mode", &info->value);
}

static Ret get_uuid(const Gpu *gpu, const char *name, unsigned char *bytes)
{
    char text[TEXT];
    int count = 0;
    TRY(get_text(gpu, name, text));
    for (const char *at = text; *at && count < 16; at++)
        if (*at != '-' && sscanf(at++, "%2hhx", &bytes[count++]) != 1)
            return UNKNOWN;
    return count == 16 ? OK : UNKNOWN;
}

EXPORT Ret nvmlDeviceGetGpuFabricInfoV(Gpu *gpu, GpuFabricInfo_v3 *info)
{
    int third = info->version == (sizeof(GpuFabricInfo_v3) | 3 << 24);
    unsigned value;
    GUARD(gpu);
    if (!third && info->version != (sizeof(GpuFabricInfo_v2) | 2 << 24))
        return ARGUMENT_VERSION_MISMATCH;
    TRY(get_number(gpu, "fabric_state", &value));
    info->state = (unsigned char)value;
    TRY(get_number(gpu, "fabric_status", &info->status));
    TRY(get_number(gpu, "fabric_clique", &info->cliqueId));
    TRY(get_uuid(gpu, "fabric_cluster", info->clusterUuid));
    TRY(get_number(gpu, "fabric_health", &info->healthMask));
    if (!third)
        return OK;
    TRY(get_number(gpu, "fabric_summary", &value));
    info->healthSummary = (unsigned char)value;
    return OK;
}

static Ret get_byte(const Gpu *gpu, const char *name, unsigned char *out)
{
    unsigned value;
    TRY(get_number(gpu, name, &value));
    *out = (unsigned char)value;
    return OK;
}

EXPORT Ret nvmlDeviceGetPlatformInfo(Gpu *gpu, PlatformInfo_v2 *info)
{
    char text[TEXT];
    GUARD_IDENTITY(gpu);
    VERSIONED(info, 2);
    TRY(get_text(gpu, "platform_chassis_serial", text));
    memset(info->ibGuid, 0, sizeof info->ibGuid);
    memset(info->chassisSerialNumber, 0, sizeof info->chassisSerialNumber);
    memcpy(info->chassisSerialNumber, text, strnlen(text, sizeof info->chassisSerialNumber));
    TRY(get_byte(gpu, "platform_slot", &info->slotNumber));
    TRY(get_byte(gpu, "platform_tray", &info->trayIndex));
    TRY(get_byte(gpu, "platform_host", &info->hostId));
    TRY(get_byte(gpu, "platform_peer_type", &info->peerType));
    return get_byte(gpu, "platform_module", &info->moduleId);
}

EXPORT Ret nvmlDeviceGetC2cModeInfoV(Gpu *gpu, C2cModeInfo_v1 *info) { GUARD(gpu); return get_number(gpu, "c2c_mode", &info->isC2cEnabled); }

EXPORT Ret nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(Gpu *gpu, PowerProfiles_v1 *info)
{
    unsigned long long masks[3];
    int count;
    GUARD(gpu);
    VERSIONED(info, 1);
    TRY(get_numbers(gpu, "power_profiles", masks, 3, &count));
    memset(&info->perfProfilesMask, 0, sizeof *info - sizeof info->version);
    info->perfProfilesMask.mask[0] = (unsigned)masks[0];
    info->requestedProfilesMask.mask[0] = count > 1 ? (unsigned)masks[1] : 0;
    info->enforcedProfilesMask.mask[0] = count > 2 ? (unsigned)masks[2] : 0;
    return OK;
}

/* ---- ECC --------------------------------------------------------------------------------------------------------- */

static Ret ecc_counter(const Gpu *gpu, unsigned counter, const char *what, unsigned long long *sum)
{
    char name[64];
    unsigned long long value;
    snprintf(name, sizeof name, "ecc_%s_%s", counter ? "aggregate" : "volatile", what);
    TRY(get_long(gpu, name, &value));
    *sum += value;
    return OK;
}

static Ret ecc_sum(const Gpu *gpu, unsigned bad, unsigned counter, int dram, int sram, unsigned long long *out)
{
    unsigned long long sum = 0;
    if (dram)
        TRY(ecc_counter(gpu, counter, bad ? "dram_uncorrected" : "dram_corrected", &sum));
    if (sram && !bad)
        TRY(ecc_counter(gpu, counter, "sram_corrected", &sum));
    if (sram && bad) {
        TRY(ecc_counter(gpu, counter, "sram_parity", &sum));
        TRY(ecc_counter(gpu, counter, "sram_secded", &sum));
    }
    *out = sum;
    return OK;
}

EXPORT Ret nvmlDeviceGetTotalEccErrors(Gpu *gpu, unsigned bad, unsigned counter, unsigned long long *out)
{
    GUARD(gpu);
    return bad > 1 || counter > 1 ? INVALID_ARGUMENT : ecc_sum(gpu, bad, counter, 1, 1, out);
}

EXPORT Ret nvmlDeviceGetMemoryErrorCounter(Gpu *gpu, unsigned bad, unsigned counter, unsigned location, unsigned long long *out)
{
    GUARD(gpu);
    if (bad > 1 || counter > 1)
        return INVALID_ARGUMENT;
    return location == 2 || location == 7 ? ecc_sum(gpu, bad, counter, location == 2, location == 7, out) : NOT_SUPPORTED;
}

/* ---- clocks: a lock bounds what the GPU runs at, and a load lets it run -------------------------------------------------- */

static void read_load(const Gpu *gpu, Load *load)
{
    unsigned long long lock[2];
    unsigned most = 0, limit = 0, normal = 0;
    int count;
    char text[TEXT];
    memset(load, 0, sizeof *load);
    get_number(gpu, "clock_max_sm", &most);
    if (get_number(gpu, "power_enforced", &limit))
        get_number(gpu, "power_limit", &limit);
    get_number(gpu, "power_default", &normal);
    load->most = most, load->enforced = limit, load->normal = normal;
    if (get_numbers(gpu, "locked_sm_clocks", lock, 2, &count) == OK && count == 2)
        load->lock[0] = (double)lock[0], load->lock[1] = (double)lock[1];
    if (get_text(gpu, "event_reasons", text) == OK)
        load->reasons = (unsigned)strtoul(text, NULL, 0);
}

static Ret clock_now(const Gpu *gpu, int memory, unsigned *out)
{
    unsigned long long lock[2];
    int count, busy = is_busy(gpu);
    Load load;
    if (busy && !memory) {
        read_load(gpu, &load);
        *out = (unsigned)load_clock(&load);
        return OK;
    }
    TRY(get_number(gpu, memory ? busy ? "clock_max_memory" : "clock_memory" : "clock_sm", out));
    if (get_numbers(gpu, memory ? "locked_memory_clocks" : "locked_sm_clocks", lock, 2, &count) == OK && count == 2) {
        if (*out < lock[0])
            *out = (unsigned)lock[0];
        if (*out > lock[1])
            *out = (unsigned)lock[1];
    }
    return OK;
}

EXPORT Ret nvmlDeviceGetCurrentClocksEventReasons(Gpu *gpu, unsigned long long *out)
{
    Load load;
    GUARD(gpu);
    TRY(get_long(gpu, "event_reasons", out));
    if (is_busy(gpu)) {
        read_load(gpu, &load);
        *out = load_reasons(&load);
    }
    return OK;
}

EXPORT Ret nvmlDeviceGetCurrentClocksThrottleReasons(Gpu *gpu, unsigned long long *out) { return nvmlDeviceGetCurrentClocksEventReasons(gpu, out); }

static Ret power_now(const Gpu *gpu, unsigned *out)
{
    Load load;
    TRY(get_number(gpu, "power_draw", out));
    if (is_busy(gpu)) {
        read_load(gpu, &load);
        *out = (unsigned)(load_is_capped(&load) ? load.enforced : load_power(&load));
    }
    return OK;
}

EXPORT Ret nvmlDeviceGetPowerUsage(Gpu *gpu, unsigned *out) { GUARD(gpu); return power_now(gpu, out); }

EXPORT Ret nvmlDeviceGetClockInfo(Gpu *gpu, unsigned domain, unsigned *out)
{
    GUARD(gpu);
    return domain > 2 ? NOT_SUPPORTED : clock_now(gpu, domain == 2, out);
}

EXPORT Ret nvmlDeviceGetMaxClockInfo(Gpu *gpu, unsigned domain, unsigned *out)
{
    GUARD(gpu);
    return domain > 2 ? NOT_SUPPORTED : get_number(gpu, domain == 2 ? "clock_max_memory" : "clock_max_sm", out);
}

EXPORT Ret nvmlDeviceGetApplicationsClock(Gpu *gpu, unsigned domain, unsigned *out)
{
    GUARD(gpu);
    return domain ? NOT_SUPPORTED : get_number(gpu, "clock_application", out);
}

EXPORT Ret nvmlDeviceGetDefaultApplicationsClock(Gpu *gpu, unsigned domain, unsigned *out)
{
    GUARD(gpu);
    return domain ? NOT_SUPPORTED : get_number(gpu, "clock_application_default", out);
}

static Ret give_list(const Gpu *gpu, const char *name, unsigned *count, unsigned *out)
{
    unsigned long long values[512];
    int found;
    TRY(get_numbers(gpu, name, values, 512, &found));
    if (!out || *count < (unsigned)found) {
        *count = (unsigned)found;
        return INSUFFICIENT_SIZE;
    }
    for (int i = 0; i < found; i++)
        out[i] = (unsigned)values[i];
    *count = (unsigned)found;
    return OK;
}

static Ret is_offered(const Gpu *gpu, const char *name, unsigned clock)
{
    unsigned clocks[512], count = 512;
    TRY(give_list(gpu, name, &count, clocks));
    for (unsigned i = 0; i < count; i++)
        if (clocks[i] == clock)
            return OK;
    return INVALID_ARGUMENT;
}

EXPORT Ret nvmlDeviceGetSupportedMemoryClocks(Gpu *gpu, unsigned *count, unsigned *out) { GUARD(gpu); return give_list(gpu, "supported_memory_clocks", count, out); }

EXPORT Ret nvmlDeviceGetSupportedGraphicsClocks(Gpu *gpu, unsigned memory, unsigned *count, unsigned *out)
{
    GUARD(gpu);
    if (is_offered(gpu, "supported_memory_clocks", memory))
        return NOT_FOUND;
    return give_list(gpu, "supported_sm_clocks", count, out);
}

/* ---- setters: root only, values checked --------------------------------------------------------------------------- */

#define ROOT_ONLY() do { if (geteuid()) return NO_PERMISSION; } while (0)

static Ret put_pair(const Gpu *gpu, const char *name, unsigned least, unsigned most)
{
    char text[64];
    snprintf(text, sizeof text, "%u %u\n", least, most);
    return put_text(gpu, name, text);
}

EXPORT Ret nvmlDeviceSetPersistenceMode(Gpu *gpu, unsigned mode)
{
    GUARD(gpu);
    ROOT_ONLY();
    return mode > 1 ? INVALID_ARGUMENT : put_text(gpu, "persistence", mode ? "1\n" : "0\n");
}

EXPORT Ret nvmlDeviceSetGpuLockedClocks(Gpu *gpu, unsigned least, unsigned most)
{
    unsigned clocks[512], count = 512;
    GUARD(gpu);
    ROOT_ONLY();
    TRY(give_list(gpu, "supported_sm_clocks", &count, clocks));
    if (least > most || least < clocks[count - 1] || most > clocks[0])
        return INVALID_ARGUMENT;
    return put_pair(gpu, "locked_sm_clocks", least, most);
}

EXPORT Ret nvmlDeviceSetMemoryLockedClocks(Gpu *gpu, unsigned least, unsigned most)
{
    GUARD(gpu);
    ROOT_ONLY();
    if (least > most)
        return INVALID_ARGUMENT;
    TRY(is_offered(gpu, "supported_memory_clocks", least));
    TRY(is_offered(gpu, "supported_memory_clocks", most));
    return put_pair(gpu, "locked_memory_clocks", least, most);
}

EXPORT Ret nvmlDeviceResetGpuLockedClocks(Gpu *gpu) { GUARD(gpu); ROOT_ONLY(); return drop(gpu, "locked_sm_clocks"); }
EXPORT Ret nvmlDeviceResetMemoryLockedClocks(Gpu *gpu) { GUARD(gpu); ROOT_ONLY(); return drop(gpu, "locked_memory_clocks"); }

EXPORT Ret nvmlDeviceSetPowerManagementLimit(Gpu *gpu, unsigned milliwatts)
{
    char text[32];
    unsigned least, most;
    GUARD(gpu);
    ROOT_ONLY();
    TRY(get_number(gpu, "power_min", &least));
    TRY(get_number(gpu, "power_max", &most));
    if (milliwatts < least || milliwatts > most)
        return INVALID_ARGUMENT;
    snprintf(text, sizeof text, "%u\n", milliwatts);
    return put_text(gpu, "power_limit", text);
}

EXPORT Ret nvmlDeviceSetPowerManagementLimit_v2(Gpu *gpu, PowerValue_v2 *value)
{
    VERSIONED(value, 2);
    return value->powerScope ? NOT_SUPPORTED : nvmlDeviceSetPowerManagementLimit(gpu, value->powerValueMw);
}

/* ---- links and field values ---------------------------------------------------------------------------------------- */

static Ret of_link(const Gpu *gpu, const char *name, unsigned link, unsigned *out)
{
    unsigned long long values[64];
    int count;
    TRY(get_numbers(gpu, name, values, 64, &count));
    if (link >= (unsigned)count)
        return INVALID_ARGUMENT;
    *out = (unsigned)values[link];
    return OK;
}

static Ret links_of(const Gpu *gpu, const char *name, unsigned *out)
{
    unsigned long long values[64];
    int count;
    TRY(get_numbers(gpu, name, values, 64, &count));
    *out = (unsigned)count;
    return OK;
}

static Ret speed_of(const Gpu *gpu, const char *states, const char *speed, unsigned link, unsigned *out)
{
    unsigned up;
    TRY(of_link(gpu, states, link, &up));
    *out = 0;
    return up ? get_number(gpu, speed, out) : OK;
}

EXPORT Ret nvmlDeviceGetNvLinkState(Gpu *gpu, unsigned link, unsigned *active) { GUARD(gpu); return of_link(gpu, "nvlink_states", link, active); }

typedef struct { unsigned field; const char *name; } Named;

static const Named PLAIN[] = {
    {82, "temperature_memory"}, {226, "reset_required"}, {227, "drain_recommended"},
    {230, "recovery_action"}, {95, "pcie_rollovers"}, {0, NULL}
};
static const Named PER_LINK[] = {
    {161, "nvlink_replay"}, {162, "nvlink_recovery"}, {163, "nvlink_crc"}, {208, "nvlink_rx_errors"},
    {213, "nvlink_recovery_ok"}, {214, "nvlink_recovery_failed"}, {219, "nvlink_effective_errors"}, {165, "nvlink_states"},
    {171, "c2c_states"}, {0, NULL}
};
static const char *const HEAT_COUNTERS[] = {"counter_sw_thermal", "counter_hw_thermal", "counter_hw_power_brake"};

static const char *name_of(const Named *table, unsigned field)
{
    for (; table->name; table++)
        if (table->field == field)
            return table->name;
    return NULL;
}

/* Drivers from 575 to 580.65 have these counters at 251, later ones at 269. */
static unsigned first_heat_counter(void)
{
    char text[TEXT];
    unsigned branch = 0, release = 0;
    if (get_text(NULL, "driver_version", text) || sscanf(text, "%u.%u", &branch, &release) != 2)
        return 269;
    return branch >= 575 && (branch < 580 || (branch == 580 && release < 82)) ? 251 : 269;
}

static Ret field_value(const Gpu *gpu, FieldValue *field)
{
    const char *name;
    unsigned first = first_heat_counter();
    field->valueType = 1;
    if ((name = name_of(PLAIN, field->fieldId)))
        return get_number(gpu, name, &field->value.ui);
    if ((name = name_of(PER_LINK, field->fieldId)))
        return of_link(gpu, name, field->scopeId, &field->value.ui);
    if (field->fieldId == 74 || (field->fieldId >= first && field->fieldId < first + 3)) {
        field->valueType = 3;
        return get_long(gpu, field->fieldId == 74 ? "counter_sw_power_cap" : HEAT_COUNTERS[field->fieldId - first], &field->value.ull);
    }
    switch (field->fieldId) {
    case 185: return power_now(gpu, &field->value.ui);
    case 91: return links_of(gpu, "nvlink_states", &field->value.ui);
    case 164: return speed_of(gpu, "nvlink_states", "nvlink_speed", field->scopeId, &field->value.ui);
    case 170: return links_of(gpu, "c2c_states", &field->value.ui);
    case 172: return speed_of(gpu, "c2c_states", "c2c_speed", field->scopeId, &field->value.ui);
    case 189: return get_number(gpu, field->scopeId == 1 ? "module_power_default" : "power_default", &field->value.ui);
    case 190: return get_number(gpu, field->scopeId == 1 ? "module_power_limit" : "power_limit", &field->value.ui);
    default: return NOT_SUPPORTED;
    }
}

EXPORT Ret nvmlDeviceGetFieldValues(Gpu *gpu, int count, FieldValue *fields)
{
    GUARD(gpu);
    for (int i = 0; i < count; i++)
        fields[i].nvmlReturn = field_value(gpu, &fields[i]);
    return OK;
}

/* ---- processes ----------------------------------------------------------------------------------------------------- */

EXPORT Ret nvmlDeviceGetComputeRunningProcesses_v3(Gpu *gpu, unsigned *count, ProcessInfo_v3 *out)
{
    unsigned long long pids[256];
    int found = 0;
    Ret ret;
    GUARD(gpu);
    ret = get_numbers(gpu, "processes", pids, 256, &found);
    if (ret && ret != NOT_SUPPORTED && ret != UNKNOWN)
        return ret;
    found += contexts_of(gpu, pids + found, 256 - found);
    if (*count < (unsigned)found) {
        *count = (unsigned)found;
        return INSUFFICIENT_SIZE;
    }
    for (int i = 0; i < found; i++)
        out[i] = (ProcessInfo_v3){(unsigned)pids[i], 512ULL << 20, 0xFFFFFFFFu, 0xFFFFFFFFu};
    *count = (unsigned)found;
    return OK;
}

EXPORT Ret nvmlDeviceGetGraphicsRunningProcesses_v3(Gpu *gpu, unsigned *count, ProcessInfo_v3 *out)
{
    (void)out;
    GUARD(gpu);
    *count = 0;
    return OK;
}
