// Uses what the preload library stands in front of, on another C library: every look-up must work as without it.
#include <dlfcn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  void *program = dlopen(0, RTLD_NOW);
  int (*say)(const char *) = (int (*)(const char *))dlsym(program, "puts");
  const pid_t child = fork();
  if (child == 0) {
    _exit(dlsym(RTLD_DEFAULT, "getpid") != 0 && dlsym(program, "cuInit") == 0 ? 7 : 1);
  }
  int status = 0;
  struct rlimit limit;
  if (say == 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7 ||
      getrlimit(RLIMIT_FSIZE, &limit) != 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0) {
    return 1;
  }
  say("well");
  return 0;
}
