// looked_up OPEN LOOKUP: opens the driver in one way and looks every function up in another. Built twice: linked with
// libc only, and linked with -lcuda (where OPEN may be `linked`).
#include <dlfcn.h>
#include <stdlib.h>

#include <string>

#include "fill.h"

namespace {

using Dlsym = void *(*)(void *, const char *);
using Dlvsym = void *(*)(void *, const char *, const char *);

#if defined(__aarch64__)
constexpr char kFirstVersion[] = "GLIBC_2.17";
#else
constexpr char kFirstVersion[] = "GLIBC_2.2.5";
#endif
constexpr char kNewestVersion[] = "GLIBC_2.34";

void *open_driver(const std::string &how) {
  if (how == "linked") {
    return RTLD_DEFAULT;
  }
  if (how == "program") {
    return dlopen(nullptr, RTLD_NOW);
  }
  if (how == "soname") {
    return dlopen("libcuda.so.1", RTLD_NOW);
  }
  if (how == "unversioned") {
    return dlopen("libcuda.so", RTLD_LAZY);
  }
  if (how == "global") {
    return dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  }
  const char *folder = getenv("DRIVER_FOLDER");
  return how == "absolute" && folder != nullptr ? dlopen((std::string(folder) + "/libcuda.so.1").c_str(), RTLD_NOW)
                                                : nullptr;
}

// How the program finds dlsym itself.
Dlsym dlsym_by(const std::string &how) {
  void *found = reinterpret_cast<void *>(&dlsym);
  if (how == "dlsym_by_dlsym") {
    found = dlsym(RTLD_DEFAULT, "dlsym");
  } else if (how == "dlsym_by_dlsym_next") {
    found = dlsym(RTLD_NEXT, "dlsym");
  } else if (how == "dlsym_by_dlsym_libc") {
    found = dlsym(dlopen("libc.so.6", RTLD_LAZY), "dlsym");
  } else if (how == "dlsym_by_dlvsym_first") {
    found = dlvsym(RTLD_DEFAULT, "dlsym", kFirstVersion);
  } else if (how == "dlsym_by_dlvsym_newest") {
    found = dlvsym(RTLD_DEFAULT, "dlsym", kNewestVersion);
  } else if (how == "dlsym_by_dlvsym_next_first") {
    found = dlvsym(RTLD_NEXT, "dlsym", kFirstVersion);
  } else if (how == "dlsym_by_dlvsym_next_newest") {
    found = dlvsym(RTLD_NEXT, "dlsym", kNewestVersion);
  } else if (how == "dlsym_by_dlvsym_libc") {
    found = dlvsym(dlopen("libc.so.6", RTLD_LAZY), "dlsym", kFirstVersion);
  }
  return reinterpret_cast<Dlsym>(found);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    return 2;
  }
  const std::string how = argv[2];
  void *driver = open_driver(argv[1]);
  if (driver == nullptr && std::string(argv[1]) != "linked") {
    dprintf(2, "%s\n", dlerror());
    return 1;
  }
  if (how == "dlvsym" || how == "dlvsym_by_dlsym") {
    const auto look_up =
        how == "dlvsym" ? &dlvsym : reinterpret_cast<Dlvsym>(dlsym(dlopen("libc.so.6", RTLD_LAZY), "dlvsym"));
    return preload::fill(
        preload::calls_found_by([&](const char *name) { return look_up(driver, name, "CUDA_TEST_1"); }));
  }
  if (how == "next") {
    return preload::fill(preload::calls_found_by([](const char *name) { return dlsym(RTLD_NEXT, name); }));
  }
  if (how == "default") {
    return preload::fill(preload::calls_found_by([](const char *name) { return dlsym(RTLD_DEFAULT, name); }));
  }
  if (how == "dlopen_by_dlsym") {
    const auto open = reinterpret_cast<decltype(&dlopen)>(dlsym(dlopen("libc.so.6", RTLD_LAZY), "dlopen"));
    driver = open("libcuda.so.1", RTLD_NOW);
  }
  const Dlsym look_up = dlsym_by(how);
  const int status = preload::fill(preload::calls_found_by([&](const char *name) { return look_up(driver, name); }));
  // Another preload may be present and count calls; see interposer.cc.
  if (const auto seen = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "interposed_calls"))) {
    dprintf(1, "interposed=%d\n", seen());
  }
  return status;
}
