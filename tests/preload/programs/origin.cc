// Prints whether a library found its neighbour (origin_opener.cc).
#include <stdio.h>

extern "C" const char *open_beside();

int main() {
  dprintf(1, "beside %s\n", open_beside());
  return 0;
}
