/* Reports the state in which a command starts and the signals that reach it. Uses no CUDA. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Prints "ready", then the number of the first signal, and exits with that number. */
static int await_signal(void) {
  sigset_t set;
  int signal = 0;
  sigfillset(&set);
  sigprocmask(SIG_BLOCK, &set, NULL);
  puts("ready");
  fflush(stdout);
  sigwait(&set, &signal);
  printf("signal %d\n", signal);
  return signal;
}

/* Leaves the terminal's foreground group and prints "ready"; at SIGTERM prints how many interrupts came before it. */
static int count_interrupts(void) {
  sigset_t set;
  int signal = 0, interrupts = 0;
  setpgid(0, 0);
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, NULL);
  puts("ready");
  fflush(stdout);
  while (signal != SIGTERM) {
    sigwait(&set, &signal);
    interrupts += signal == SIGINT;
  }
  printf("interrupts %d\n", interrupts);
  return 0;
}

static int show_start(void) {
  sigset_t mask;
  struct stat status;
  struct sigaction action;
  int i;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  for (i = 1; i < 32; i++) {
    sigaction(i, NULL, &action);
    printf("%d%s%s\n", i, sigismember(&mask, i) ? " blocked" : "", action.sa_handler == SIG_IGN ? " ignored" : "");
  }
  for (i = 0; i < 256; i++) {
    if (fstat(i, &status) == 0) printf("descriptor %d\n", i);
  }
  return 0;
}

/* Returns once /proc shows `process` in `state`. */
static void await_state(pid_t process, char state) {
  char path[64], text[512], *shown;
  snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
  do {
    FILE *file = fopen(path, "r");
    size_t count = file == NULL ? 0 : fread(text, 1, sizeof(text) - 1, file);
    if (file != NULL) fclose(file);
    text[count] = 0;
    shown = strrchr(text, ')');
  } while (shown == NULL || shown[2] != state);
}

/* Stops itself; a child continues it once /proc shows that it has stopped. */
static int stop_and_go(void) {
  pid_t self = getpid();
  pid_t child = fork();
  if (child == 0) {
    await_state(self, 'T');
    kill(self, SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
  waitpid(child, NULL, 0);
  return 5;
}

/* Stops its parent, sends it signals and ends; then a child continues the parent. */
static int end_first(void) {
  pid_t self = getpid(), parent = getppid();
  signal(SIGHUP, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  kill(parent, SIGSTOP);
  await_state(parent, 'T');
  kill(parent, SIGHUP);
  kill(parent, SIGTERM);
  if (fork() == 0) {
    await_state(self, 'Z');
    kill(parent, SIGCONT);
    _exit(0);
  }
  return 9;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "await")) return await_signal();
  if (!strcmp(what, "count")) return count_interrupts();
  if (!strcmp(what, "start")) return show_start();
  if (!strcmp(what, "stop")) return stop_and_go();
  if (!strcmp(what, "end")) return end_first();
  if (!strcmp(what, "secure")) return printf("secure %lu\n", getauxval(AT_SECURE)) < 0;
  if (!strcmp(what, "preload")) return puts(getenv("LD_PRELOAD") == NULL ? "(none)" : getenv("LD_PRELOAD")) < 0;
  return 64;
}
