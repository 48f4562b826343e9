// What does it cost to pin memory of the host, per GiB: cuMemHostAlloc, cuMemHostRegister of pages that were touched
// and of pages that were not, with plain and with huge pages, also by several threads? And what does touching cost?
#include <sys/mman.h>

#include <thread>

#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr std::size_t kPage = 4096;

std::size_t much() {
  return simulated() ? 16 * kMiB : kGiB;
}

// Fresh pages: none of them exists yet.
class Pages {
 public:
  Pages(std::size_t bytes, bool huge) : bytes_(bytes) {
    constexpr std::size_t kHuge = 2 * kMiB;
    whole_ = mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole_ == MAP_FAILED) skip("no memory of the host");
    const auto aligned = (reinterpret_cast<std::uintptr_t>(whole_) + kHuge - 1) / kHuge * kHuge;
    begin_ = reinterpret_cast<char *>(aligned);
    if (madvise(begin_, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0 && huge) skip("no huge pages");
  }
  ~Pages() { munmap(whole_, bytes_ + 2 * kMiB); }
  Pages(const Pages &) = delete;
  Pages &operator=(const Pages &) = delete;

  char *begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  void *whole_ = nullptr;
  char *begin_ = nullptr;
};

// Calls act(begin, bytes) for equal parts of the pages, in a thread each.
template <class Act>
void in_threads(const Pages &pages, std::size_t threads, const Act &act) {
  std::vector<std::thread> all;
  const std::size_t part = pages.bytes() / threads;
  for (std::size_t i = 0; i < threads; ++i) {
    all.emplace_back([&act, begin = pages.begin() + i * part, part] { act(begin, part); });
  }
  for (std::thread &one : all) one.join();
}

void touch(const Pages &pages, std::size_t threads) {
  in_threads(pages, threads, [](char *begin, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += kPage) *static_cast<volatile char *>(begin + i) = 1;
  });
}

double per_gib(double us) {
  return us / 1000 * static_cast<double>(kGiB) / static_cast<double>(much());
}

void of_pages(Test &test, const std::string &name, bool huge) {
  for (const std::size_t threads : {std::size_t{1}, std::size_t{4}, std::size_t{8}}) {
    const Pages pages(much(), huge);
    test.number(name + ".touch_by_" + std::to_string(threads) + "_threads_ms_per_GiB",
                per_gib(microseconds([&] { touch(pages, threads); })));
  }
  for (const bool touched : {false, true}) {
    const Pages pages(much(), huge);
    if (touched) touch(pages, 4);
    const std::string what = name + (touched ? ".touched" : ".untouched");
    for (const char *const turn : {"", "_again"}) {
      test.number(what + ".register" + turn + "_ms_per_GiB", per_gib(microseconds([&] {
                    must(cuMemHostRegister(pages.begin(), pages.bytes(), CU_MEMHOSTREGISTER_PORTABLE));
                  })));
      test.number(what + ".unregister" + turn + "_ms_per_GiB",
                  per_gib(microseconds([&] { must(cuMemHostUnregister(pages.begin())); })));
    }
  }
}

void by_threads(Test &test, std::size_t threads) {
  CUcontext context = nullptr;
  must(cuCtxGetCurrent(&context));
  const Pages pages(much(), false);
  touch(pages, 4);
  std::vector<CUresult> codes(threads, CUDA_SUCCESS);
  const std::size_t part = pages.bytes() / threads;
  const auto all = [&](const auto &call) {
    return per_gib(microseconds([&] {
      in_threads(pages, threads, [&](char *begin, std::size_t bytes) {
        CUresult &code = codes[static_cast<std::size_t>(begin - pages.begin()) / part];
        code = cuCtxSetCurrent(context);
        if (code == CUDA_SUCCESS) code = call(begin, bytes);
      });
    }));
  };
  const std::string name = "registered_by_" + std::to_string(threads) + "_threads";
  test.number(name + ".register_ms_per_GiB", all([](char *begin, std::size_t bytes) {
                return cuMemHostRegister(begin, bytes, CU_MEMHOSTREGISTER_PORTABLE);
              }));
  for (const CUresult code : codes) must(code);
  test.number(name + ".unregister_ms_per_GiB",
              all([](char *begin, std::size_t) { return cuMemHostUnregister(begin); }));
  for (const CUresult code : codes) must(code);
}

void registered(Test &test) {
  of_pages(test, "plain_pages", false);
  for (const std::size_t threads : {std::size_t{4}, std::size_t{8}}) by_threads(test, threads);
  test.note("1 GiB of fresh pages of 4 KiB.");
}

void huge_pages(Test &test) {
  of_pages(test, "huge_pages", true);
  test.note("1 GiB of fresh memory for which the kernel was asked for huge pages.");
}

void allocated(Test &test) {
  for (const char *const turn : {"", "_again"}) {
    void *host = nullptr;
    test.number(std::string("cuMemHostAlloc") + turn + "_ms_per_GiB",
                per_gib(microseconds([&] { must(cuMemHostAlloc(&host, much(), CU_MEMHOSTALLOC_PORTABLE)); })));
    test.number(std::string("cuMemFreeHost") + turn + "_ms_per_GiB",
                per_gib(microseconds([&] { must(cuMemFreeHost(host)); })));
  }
  std::vector<void *> parts(16);
  const std::size_t part = much() / parts.size();
  test.number("cuMemHostAlloc_in_16_parts_ms_per_GiB", per_gib(microseconds([&] {
                for (void *&one : parts) must(cuMemHostAlloc(&one, part, CU_MEMHOSTALLOC_PORTABLE));
              })));
  test.number("cuMemFreeHost_in_16_parts_ms_per_GiB", per_gib(microseconds([&] {
                for (void *const one : parts) must(cuMemFreeHost(one));
              })));
  test.note("1 GiB at once, again, and in 16 parts.");
}

}  // namespace

int main() {
  return question::run({{"allocated", allocated}, {"registered", registered}, {"huge_pages", huge_pages}});
}
