/* steps [STEP]...: load the driver, init it, alloc 1 MiB, fork, filter system calls; then prints `ready`, after `fork`
   the child's ID, too, and waits for the end of stdin. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void *driver;

static int call(const char *name, void *first, size_t second) {
  int (*function)(void *, size_t) = (int (*)(void *, size_t))dlsym(driver, name);
  return function == NULL || function(first, second) != 0;
}

static int allocate(void) {
  void *context = NULL;
  unsigned long long block = 0;
  return call("cuDevicePrimaryCtxRetain", &context, 0) || call("cuCtxSetCurrent", context, 0) ||
         call("cuMemAlloc_v2", &block, 1 << 20);
}

/* All calls are allowed. */
static int filter(void) {
  struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {1, &allow};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* The child ends with its parent. */
static pid_t forked(void) {
  int ends[2];
  char none;
  pid_t child = pipe(ends) != 0 ? -1 : fork();
  if (child == 0) {
    close(ends[1]);
    _exit(read(ends[0], &none, 1) != 0);
  }
  return child;
}

int main(int argc, char **argv) {
  pid_t child = 0;
  int i;
  for (i = 1; i < argc; i++) {
    int failed = 0;
    if (!strcmp(argv[i], "load")) failed = (driver = dlopen("libcuda.so.1", RTLD_NOW)) == NULL;
    if (!strcmp(argv[i], "init")) failed = call("cuInit", NULL, 0);
    if (!strcmp(argv[i], "alloc")) failed = allocate();
    if (!strcmp(argv[i], "filter")) failed = filter();
    if (!strcmp(argv[i], "fork")) failed = (child = forked()) < 0;
    if (failed) return fprintf(stderr, "steps: %s failed\n", argv[i]), 1;
  }
  if (child != 0) {
    printf("ready %d\n", (int)child);
  } else {
    puts("ready");
  }
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0;
}
