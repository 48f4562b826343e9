#include "fork_handlers.h"

int fork_handlers() {
  return 0;
}
