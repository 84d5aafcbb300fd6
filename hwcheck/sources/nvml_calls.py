"""
What is asked of NVML: functions, field values, links; as text, so that a node which has no GPU does not compile it.

A row of :data:`CALLS`: ``group name[=symbol|older symbol](CONSTANT,...) form``. The name is what the log says, the
symbol what the library exports, where the two differ. Forms:

* ``I``, ``i``, ``Q``: one number by pointer (unsigned, signed, 64 bit);
* ``text N``: a buffer of N bytes and its length; ``version N``: the same without the length;
* ``outs name:I ...``: several pointers in a row;
* ``{ name:I ... }``: one struct by pointer; ``{2 ...}``: its first field is a version, here 2, with the struct's size.

Struct fields: as in :mod:`struct`, and ``16s`` text, ``16U`` a UUID of 16 bytes, ``16X`` bytes in hexadecimal, ``8I``
a list. A call that stands twice is asked in the second form where the driver does not know the first.

A row of :data:`FIELDS`: ``group NAME id[/scope constant]``. Those of :data:`LINK_FIELDS` are asked of each link of the
group's kind, with the link as scope.

:data:`MOVED` are ids that drivers from 575 to 580.65 have; later ones moved them and put settings of power smoothing in
their place, so an id of the wrong header reads something else as a time. Between the two, and before 575, nobody knows.

Source: nvml.h of CUDA 12.0 to 13.5. Checked against that header by tests/lab/test_nvml.py.
"""
# ruff: noqa: E501 - a row of these tables is one line

NODE_CALLS = """
node nvmlSystemGetDriverVersion text 80
node nvmlSystemGetCudaDriverVersion_v2 i
node nvmlSystemGetNVMLVersion text 80
node nvmlDeviceGetCount_v2 I
"""

CALLS = """
identity nvmlDeviceGetPciInfo=nvmlDeviceGetPciInfo_v3 { busIdLegacy:16s domain:I bus:I device:I pciDeviceId:I pciSubSystemId:I busId:32s }
identity nvmlDeviceGetIndex I
identity nvmlDeviceGetMinorNumber I
identity nvmlDeviceGetUUID text 96
identity nvmlDeviceGetSerial text 30
identity nvmlDeviceGetName text 96
identity nvmlDeviceGetArchitecture I
identity nvmlDeviceGetBoardPartNumber text 80
identity nvmlDeviceGetVbiosVersion text 32
identity nvmlDeviceGetInforomImageVersion text 16
identity nvmlDeviceGetGspFirmwareVersion version 64
identity nvmlDeviceGetModuleId I
identity nvmlDeviceGetPlatformInfo {2 ibGuid:16X chassisSerialNumber:16s slotNumber:B trayIndex:B hostId:B peerType:B moduleId:B }
identity nvmlDeviceGetNumaNodeId I
modes nvmlDeviceGetPersistenceMode I
modes nvmlDeviceGetAddressingMode {1 value:I }
modes nvmlDeviceGetVirtualizationMode I
modes nvmlDeviceGetComputeMode I
modes nvmlDeviceGetMigMode outs current:I pending:I
modes nvmlDeviceGetPerformanceState I
modes nvmlDeviceGetUtilizationRates { gpu:I memory:I }
memory nvmlDeviceGetMemoryInfo_v2 {2 total:Q reserved:Q free:Q used:Q }
memory nvmlDeviceGetBAR1MemoryInfo { bar1Total:Q bar1Free:Q bar1Used:Q }
memory nvmlDeviceGetMemoryBusWidth I
ecc nvmlDeviceGetEccMode outs current:I pending:I
ecc nvmlDeviceGetTotalEccErrors(NVML_MEMORY_ERROR_TYPE_CORRECTED,NVML_VOLATILE_ECC) Q
ecc nvmlDeviceGetTotalEccErrors(NVML_MEMORY_ERROR_TYPE_UNCORRECTED,NVML_VOLATILE_ECC) Q
ecc nvmlDeviceGetTotalEccErrors(NVML_MEMORY_ERROR_TYPE_CORRECTED,NVML_AGGREGATE_ECC) Q
ecc nvmlDeviceGetTotalEccErrors(NVML_MEMORY_ERROR_TYPE_UNCORRECTED,NVML_AGGREGATE_ECC) Q
ecc nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_CORRECTED,NVML_VOLATILE_ECC,NVML_MEMORY_LOCATION_DRAM) Q
ecc nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_UNCORRECTED,NVML_VOLATILE_ECC,NVML_MEMORY_LOCATION_DRAM) Q
ecc nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_UNCORRECTED,NVML_VOLATILE_ECC,NVML_MEMORY_LOCATION_SRAM) Q
ecc nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_CORRECTED,NVML_AGGREGATE_ECC,NVML_MEMORY_LOCATION_DRAM) Q
ecc nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_UNCORRECTED,NVML_AGGREGATE_ECC,NVML_MEMORY_LOCATION_DRAM) Q
ecc nvmlDeviceGetMemoryErrorCounter(NVML_MEMORY_ERROR_TYPE_UNCORRECTED,NVML_AGGREGATE_ECC,NVML_MEMORY_LOCATION_SRAM) Q
ecc nvmlDeviceGetSramEccErrorStatus {1 aggregateUncParity:Q aggregateUncSecDed:Q aggregateCor:Q volatileUncParity:Q volatileUncSecDed:Q volatileCor:Q aggregateUncBucketL2:Q aggregateUncBucketSm:Q aggregateUncBucketPcie:Q aggregateUncBucketMcu:Q aggregateUncBucketOther:Q bThresholdExceeded:I }
ecc nvmlDeviceGetRepairStatus {1 bChannelRepairPending:I bTpcRepairPending:I }
ecc nvmlDeviceGetUnrepairableMemoryFlag_v1 { bUnrepairableMemory:I }
ecc nvmlDeviceGetRemappedRows outs corrRows:I uncRows:I isPending:I failureOccurred:I
ecc nvmlDeviceGetRowRemapperHistogram { max:I high:I partial:I low:I none:I }
heat nvmlDeviceGetTemperature(NVML_TEMPERATURE_GPU) I
heat nvmlDeviceGetTemperatureThreshold(NVML_TEMPERATURE_THRESHOLD_MEM_MAX) I
heat nvmlDeviceGetMarginTemperature {1 marginTemperature:i }
power nvmlDeviceGetEnforcedPowerLimit I
power nvmlDeviceGetPowerManagementLimit I
power nvmlDeviceGetPowerManagementDefaultLimit I
power nvmlDeviceGetPowerManagementLimitConstraints outs min:I max:I
power nvmlDeviceWorkloadPowerProfileGetCurrentProfiles {1 perfProfilesMask:8I requestedProfilesMask:8I enforcedProfilesMask:8I }
clocks nvmlDeviceGetClockInfo(NVML_CLOCK_GRAPHICS) I
clocks nvmlDeviceGetClockInfo(NVML_CLOCK_SM) I
clocks nvmlDeviceGetClockInfo(NVML_CLOCK_MEM) I
clocks nvmlDeviceGetMaxClockInfo(NVML_CLOCK_GRAPHICS) I
clocks nvmlDeviceGetMaxClockInfo(NVML_CLOCK_SM) I
clocks nvmlDeviceGetMaxClockInfo(NVML_CLOCK_MEM) I
clocks nvmlDeviceGetApplicationsClock(NVML_CLOCK_GRAPHICS) I
clocks nvmlDeviceGetDefaultApplicationsClock(NVML_CLOCK_GRAPHICS) I
clocks nvmlDeviceGetCurrentClocksEventReasons=nvmlDeviceGetCurrentClocksEventReasons|nvmlDeviceGetCurrentClocksThrottleReasons Q
pcie nvmlDeviceGetCurrPcieLinkGeneration I
pcie nvmlDeviceGetMaxPcieLinkGeneration I
pcie nvmlDeviceGetGpuMaxPcieLinkGeneration I
pcie nvmlDeviceGetCurrPcieLinkWidth I
pcie nvmlDeviceGetMaxPcieLinkWidth I
pcie nvmlDeviceGetPcieReplayCounter I
fabric nvmlDeviceGetGpuFabricInfoV {3 clusterUuid:16U status:I cliqueId:I state:B healthMask:I healthSummary:B }
fabric nvmlDeviceGetGpuFabricInfoV {2 clusterUuid:16U status:I cliqueId:I state:B healthMask:I }
c2c nvmlDeviceGetC2cModeInfoV { isC2cEnabled:I }
"""

FIELDS = """
modes NVML_FI_DEV_GET_GPU_RECOVERY_ACTION 230
modes NVML_FI_DEV_RESET_STATUS 226
modes NVML_FI_DEV_DRAIN_AND_RESET_STATUS 227
heat NVML_FI_DEV_MEMORY_TEMP 82
power NVML_FI_DEV_POWER_AVERAGE 185
power NVML_FI_DEV_POWER_CURRENT_LIMIT 190/NVML_POWER_SCOPE_MODULE
power NVML_FI_DEV_POWER_DEFAULT_LIMIT 189/NVML_POWER_SCOPE_MODULE
clocks NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP 74
clocks NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN 269
clocks NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN 270
clocks NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN 271
pcie NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER 95
nvlink NVML_FI_DEV_NVLINK_LINK_COUNT 91
c2c NVML_FI_DEV_C2C_LINK_COUNT 170
"""

LINK_FIELDS = """
nvlink NVML_FI_DEV_NVLINK_GET_SPEED 164
nvlink NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY 161
nvlink NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY 162
nvlink NVML_FI_DEV_NVLINK_ERROR_DL_CRC 163
nvlink NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS 206
nvlink NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS 207
nvlink NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS 208
nvlink NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS 209
nvlink NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS 210
nvlink NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS 211
nvlink NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS 212
nvlink NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS 213
nvlink NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS 214
nvlink NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS 215
nvlink NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS 219
nvlink NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS 221
c2c NVML_FI_DEV_C2C_LINK_GET_STATUS 171
c2c NVML_FI_DEV_C2C_LINK_GET_MAX_BW 172
"""

MOVED = """
NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN 251
NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN 252
NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN 253
"""

CONSTANTS = """
NVML_MEMORY_ERROR_TYPE_CORRECTED 0
NVML_MEMORY_ERROR_TYPE_UNCORRECTED 1
NVML_VOLATILE_ECC 0
NVML_AGGREGATE_ECC 1
NVML_MEMORY_LOCATION_DRAM 2
NVML_MEMORY_LOCATION_SRAM 7
NVML_TEMPERATURE_GPU 0
NVML_TEMPERATURE_THRESHOLD_MEM_MAX 2
NVML_CLOCK_GRAPHICS 0
NVML_CLOCK_SM 1
NVML_CLOCK_MEM 2
NVML_POWER_SCOPE_MODULE 1
"""

ERRORS = (
    "SUCCESS UNINITIALIZED INVALID_ARGUMENT NOT_SUPPORTED NO_PERMISSION ALREADY_INITIALIZED NOT_FOUND INSUFFICIENT_SIZE "
    "INSUFFICIENT_POWER DRIVER_NOT_LOADED TIMEOUT IRQ_ISSUE LIBRARY_NOT_FOUND FUNCTION_NOT_FOUND CORRUPTED_INFOROM "
    "GPU_IS_LOST RESET_REQUIRED OPERATING_SYSTEM LIB_RM_VERSION_MISMATCH IN_USE MEMORY NO_DATA VGPU_ECC_NOT_SUPPORTED "
    "INSUFFICIENT_RESOURCES FREQ_NOT_SUPPORTED ARGUMENT_VERSION_MISMATCH DEPRECATED NOT_READY GPU_NOT_FOUND "
    "INVALID_STATE RESET_TYPE_NOT_SUPPORTED"
)
"""Names of NVML's return codes 0, 1, 2 ..., without ``NVML_ERROR_``; 999 is UNKNOWN."""
