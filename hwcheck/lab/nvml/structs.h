/* NVML's structs as the library fills them in. Layouts are checked against nvml.h by tests/lab/test_nvml.py. */
typedef struct { char busIdLegacy[16]; unsigned domain, bus, device, pciDeviceId, pciSubSystemId; char busId[32]; } PciInfo;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory_v2;
typedef struct { unsigned long long bar1Total, bar1Free, bar1Used; } BAR1Memory;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct {
    unsigned version;
    unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor, volatileUncParity, volatileUncSecDed, volatileCor,
        aggregateUncBucketL2, aggregateUncBucketSm, aggregateUncBucketPcie, aggregateUncBucketMcu, aggregateUncBucketOther;
    unsigned bThresholdExceeded;
} EccSramErrorStatus_v1;
typedef struct { unsigned version, bChannelRepairPending, bTpcRepairPending; } RepairStatus_v1;
typedef struct { unsigned bUnrepairableMemory; } UnrepairableMemory_v1;
typedef struct { unsigned max, high, partial, low, none; } RowRemapperHistogramValues;
typedef struct { unsigned version; int marginTemperature; } MarginTemperature_v1;
typedef struct { unsigned version, value; } DeviceAddressingMode_v1;
typedef struct {
    unsigned version;
    unsigned char clusterUuid[16];
    unsigned status, cliqueId;
    unsigned char state;
    unsigned healthMask;
} GpuFabricInfo_v2;
typedef struct {
    unsigned version;
    unsigned char clusterUuid[16];
    unsigned status, cliqueId;
    unsigned char state;
    unsigned healthMask;
    unsigned char healthSummary;
} GpuFabricInfo_v3;
typedef struct {
    unsigned version;
    unsigned char ibGuid[16], chassisSerialNumber[16], slotNumber, trayIndex, hostId, peerType, moduleId;
} PlatformInfo_v2;
typedef struct { unsigned isC2cEnabled; } C2cModeInfo_v1;
typedef struct { unsigned mask[8]; } Mask255;
typedef struct { unsigned version; Mask255 perfProfilesMask, requestedProfilesMask, enforcedProfilesMask; } PowerProfiles_v1;
typedef union { double d; unsigned ui; unsigned long ul; unsigned long long ull; long long sll; int si; } Value;
typedef struct { unsigned fieldId, scopeId; long long timestamp, latencyUsec; unsigned valueType, nvmlReturn; Value value; } FieldValue;
typedef struct { unsigned pid; unsigned long long usedGpuMemory; unsigned gpuInstanceId, computeInstanceId; } ProcessInfo_v3;
typedef struct { unsigned version, powerScope, powerValueMw; } PowerValue_v2;
