/* A libnvidia-ml.so.1 with one GPU, which is split by MIG. */
#include <string.h>

int nvmlInit_v2(void) {
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
  *count = 1;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  static int only;
  *device = &only;
  return index == 0 ? 0 : 2;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
  (void)device;
  strncpy(uuid, "GPU-00000000-0000-0000-0000-00000000cafe", length);
  return 0;
}

int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *later) {
  (void)device;
  *now = *later = 1;
  return 0;
}
