// deep_bound LIBRARY FUNCTION: opens the library deep-bound and lets it fill the device.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : nullptr;
  const auto fill = library != nullptr ? reinterpret_cast<int (*)()>(dlsym(library, argv[2])) : nullptr;
  if (fill == nullptr) {
    dprintf(2, "%s\n", dlerror());
    return 1;
  }
  return fill();
}
