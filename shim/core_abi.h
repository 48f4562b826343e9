/* What the front and the core know of each other: one C struct each way. The front is libc only and is preloaded; the
 * core is loaded at the first call and handed a Door; it answers with its bodies, one a row of hook_table.inc.
 * Layer: none, includable from front and hooks. Both sides are built together: `build` must be equal. */
#ifndef RATION_CORE_ABI_H_
#define RATION_CORE_ABI_H_

#include <stdint.h>

/* Per-thread state kept in the front's static TLS, where reaching it never allocates. */
struct RationThread {
  int depth; /* > 0: this thread is already inside Ration */
};

/* How often each route was taken; for display only, so racing increments may be lost. */
struct RationCoverage {
  uint64_t dlsym;            /* dlsym and dlvsym answers swapped */
  uint64_t get_proc_address; /* cuGetProcAddress answers swapped */
  uint64_t unknown_versions; /* a hooked name asked for in a version that we do not know: left alone */
};

/* front -> core */
struct RationPreloadAbi {
  const char *build;
  void *(*real_dlopen)(const char *, int);
  void *(*real_dlsym)(void *, const char *);
  void *(*driver)(void); /* dlopen handle of the process's libcuda, or NULL */
  struct RationThread *(*thread)(void);
  struct RationCoverage *coverage;
  void *const *entries; /* our export of each hook, in table order */
  unsigned hook_count;
  void *(*nvml)(void); /* dlopen handle of the libnvidia-ml that the program loaded, or NULL */
};

/* core -> front */
struct RationCoreAbi {
  const char *build;
  void *const *bodies; /* in table order; valid for ever */
  unsigned hook_count;
  /* Before the first of `bodies` is called: meets the driver, reads the settings, begins the log. 0: it could not; the
   * front then answers for itself (closed column of the table). */
  int (*begin)(void);
  /* Before the first of `nvml_bodies` is called: looks NVML's functions up, and begins nothing. */
  void (*begin_nvml)(void);
  void *const *nvml_bodies; /* in table order; valid for ever */
  unsigned nvml_hook_count;
};

/* The core's only export. NULL: it could not start. */
typedef const struct RationCoreAbi *(*ration_core_start_t)(const struct RationPreloadAbi *);

#endif /* RATION_CORE_ABI_H_ */
