// Does cuGetProcAddress return exactly the address of the exported symbol, for every name, version and stream flag that
// Ration hooks? Do two hooked exports share one address? Does the driver call its own exports through their symbols?
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>

#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

enum class Default { kLegacy, kPerThread };

struct Hook {
  const char *symbol, *name;
  int since;
  Default stream;
};

constexpr Default legacy = Default::kLegacy, per_thread = Default::kPerThread;
constexpr Hook kHooks[] = {
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) {#symbol, #name, since, stream},
#include "shim/hook_table.inc"
};

void *driver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) skip("no libcuda.so.1");
  return library;
}

// The export at exactly this address, or where it lies.
std::string symbol_at(void *address) {
  if (address == nullptr) return "nothing";
  Dl_info found{};
  if (dladdr(address, &found) == 0) return "an address in no library";
  const std::string file = found.dli_fname == nullptr ? "" : found.dli_fname;
  if (found.dli_sname != nullptr && found.dli_saddr == address) return found.dli_sname;
  return "an unnamed function of " + file.substr(file.rfind('/') + 1);
}

bool is_hooked(const std::string &symbol) {
  return std::any_of(std::begin(kHooks), std::end(kHooks), [&](const Hook &hook) { return hook.symbol == symbol; });
}

// The row that this look-up should find: the newest ABI not newer than the version, of the flag's flavour if there is
// one.
const Hook *expected(const char *name, int version, Default stream) {
  const Hook *found = nullptr;
  for (const Hook &hook : kHooks) {
    if (std::strcmp(hook.name, name) != 0 || hook.since > version) continue;
    const bool better =
        found == nullptr || hook.since > found->since || (hook.since == found->since && hook.stream == stream);
    if ((hook.stream == Default::kLegacy || stream == Default::kPerThread) && better) found = &hook;
  }
  return found;
}

void look_ups(Test &test) {
  void *const library = driver();
  int newest = 0, checked = 0, equal = 0, differing = 0, unhooked = 0;
  must(cuDriverGetVersion(&newest));
  std::set<std::string> names;
  std::set<int> versions{newest};
  for (const Hook &hook : kHooks) {
    names.insert(hook.name);
    versions.insert(hook.since);
  }
  const std::pair<const char *, cuuint64_t> flags[] = {{"default", CU_GET_PROC_ADDRESS_DEFAULT},
                                                       {"legacy", CU_GET_PROC_ADDRESS_LEGACY_STREAM},
                                                       {"per_thread", CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM}};
  std::map<std::string, std::string> reported;  // one line for a name, flag and answer, with its versions
  for (const std::string &name : names) {
    for (const auto &[flag, value] : flags) {
      for (const int version : versions) {
        if (version > newest) continue;
        const Hook *hook =
            expected(name.c_str(), version,
                     value == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? Default::kPerThread : Default::kLegacy);
        void *const symbol = hook == nullptr ? nullptr : dlsym(library, hook->symbol);
        void *found = nullptr;
        CUdriverProcAddressQueryResult status{};
        const CUresult code = cuGetProcAddress(name.c_str(), &found, version, value, &status);
        if (code != CUDA_SUCCESS) found = nullptr;
        ++checked;
        if (found == symbol) {
          ++equal;
          continue;
        }
        ++differing;
        if (found != nullptr && !is_hooked(symbol_at(found))) ++unhooked;
        std::string &versions_of = reported[name + "/" + flag + ": " + symbol_at(found) + " instead of " +
                                            (hook == nullptr ? "nothing" : hook->symbol)];
        if (!versions_of.empty()) versions_of += ' ';
        versions_of += std::to_string(version);
      }
    }
  }
  test.number("look_ups", checked);
  test.number("equal", equal);
  test.number("different", differing);
  test.number("different_and_no_hooked_export", unhooked);
  test.number("driver_version", newest);
  for (const auto &[what, where] : reported) test.text(what, "versions " + where);
  test.note(differing == 0 ? "Every look-up returns the address of the export that the hook list names."
                           : "Some look-ups return another address than the hook list names.");
}

void exports(Test &test) {
  void *const library = driver();
  std::map<void *, std::string> symbols;
  int missing = 0, shared = 0;
  for (const Hook &hook : kHooks) {
    void *const address = dlsym(library, hook.symbol);
    if (address == nullptr) {
      test.text("missing_" + std::to_string(++missing), hook.symbol);
      continue;
    }
    std::string &first = symbols[address];
    if (!first.empty()) test.text("shared_" + std::to_string(++shared), first + " = " + hook.symbol);
    first = hook.symbol;
  }
  test.number("hooks", std::size(kHooks));
  test.number("missing", missing);
  test.number("sharing_an_address", shared);
  test.note("Hooked exports that the driver lacks, and those at the address of another one.");
}

// A name that was exported once must not be found for a version before its time, whatever is hooked.
void too_early(Test &test) {
  int found_early = 0;
  for (const Hook &hook : kHooks) {
    if (expected(hook.name, hook.since - 10, hook.stream) != nullptr) continue;
    void *found = nullptr;
    CUdriverProcAddressQueryResult status{};
    const CUresult code = cuGetProcAddress(
        hook.name, &found, hook.since - 10,
        hook.stream == per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM,
        &status);
    if (code == CUDA_SUCCESS && found != nullptr) {
      test.text("found_" + std::to_string(++found_early),
                std::string(hook.name) + "@" + std::to_string(hook.since - 10) + ": " + symbol_at(found));
    }
  }
  test.number("found_too_early", found_early);
  test.note("Look-ups with a version just before the first ABI that the hook list knows.");
}

// Relocations of a library that go through the symbol of one of its own exports: those a preloaded export would catch.
struct Relocations {
  int of_own_exports = 0;
  std::set<std::string> names;
};

template <class Entry>
void count(const dl_phdr_info *object, const Elf64_Dyn *dynamic, Elf64_Sxword table, Elf64_Sxword size,
           Relocations *found) {
  const char *strings = nullptr;
  const Elf64_Sym *symbols = nullptr;
  const Entry *entries = nullptr;
  std::size_t bytes = 0;
  // The loader adds the load address to these pointers in place; where it has not, they are small.
  const auto at = [object](Elf64_Addr value) { return value < object->dlpi_addr ? value + object->dlpi_addr : value; };
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_STRTAB) strings = reinterpret_cast<const char *>(at(dynamic->d_un.d_ptr));
    if (dynamic->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym *>(at(dynamic->d_un.d_ptr));
    if (dynamic->d_tag == table) entries = reinterpret_cast<const Entry *>(at(dynamic->d_un.d_ptr));
    if (dynamic->d_tag == size) bytes = dynamic->d_un.d_val;
  }
  if (strings == nullptr || symbols == nullptr || entries == nullptr) return;
  for (std::size_t i = 0; i < bytes / sizeof(Entry); ++i) {
    const Elf64_Sym &symbol = symbols[ELF64_R_SYM(entries[i].r_info)];
    const char *name = strings + symbol.st_name;
    if (symbol.st_shndx == SHN_UNDEF || std::strncmp(name, "cu", 2) != 0) continue;
    ++found->of_own_exports;
    found->names.insert(name);
  }
}

int look_at(dl_phdr_info *object, std::size_t, void *result) {
  if (std::strstr(object->dlpi_name, "libcuda.so") == nullptr) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto *dynamic = reinterpret_cast<const Elf64_Dyn *>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    auto *found = static_cast<Relocations *>(result);
    count<Elf64_Rela>(object, dynamic, DT_JMPREL, DT_PLTRELSZ, found);
    count<Elf64_Rela>(object, dynamic, DT_RELA, DT_RELASZ, found);
  }
  return 1;
}

void own_calls(Test &test) {
  driver();
  Relocations found;
  if (dl_iterate_phdr(look_at, &found) == 0) skip("libcuda.so is not among the loaded libraries");
  test.number("relocations_of_own_exports", found.of_own_exports);
  int listed = 0;
  for (const std::string &name : found.names) {
    if (++listed <= 20) test.text("through_symbol_" + std::to_string(listed), name);
  }
  test.note(found.of_own_exports == 0
                ? "The driver cannot enter a preloaded export from inside."
                : "The driver binds some of its exports by symbol, so calls may come from inside.");
}

}  // namespace

int main() {
  return question::run(
      {{"look_ups", look_ups}, {"exports", exports}, {"too_early", too_early}, {"own_calls", own_calls}},
      question::Driver::kUntouched);
}
