// deep_bound LIBRARY FUNCTION [dlmopen]: opens the library deep-bound and lets it fill the device.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  constexpr int kDeep = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
  void *library = argc == 3 ? dlopen(argv[1], kDeep) : argc == 4 ? dlmopen(LM_ID_BASE, argv[1], kDeep) : nullptr;
  const auto fill = library != nullptr ? reinterpret_cast<int (*)()>(dlsym(library, argv[2])) : nullptr;
  if (fill == nullptr) {
    dprintf(2, "%s\n", dlerror());
    return 1;
  }
  return fill();
}
