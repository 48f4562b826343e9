#include "logs/stacks/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "logs/stacks/elf_symbols.h"

namespace ration::logs {

// The functions of elfutils, if it is installed. A portable command cannot be linked with one distribution's elfutils.
struct Elfutils {
  decltype(&::dwfl_begin) begin;
  decltype(&::dwfl_end) end;
  decltype(&::dwfl_report_offline) report_offline;
  decltype(&::dwfl_report_end) report_end;
  decltype(&::dwfl_standard_find_debuginfo) find_debuginfo;
  decltype(&::dwfl_offline_section_address) section_address;
  decltype(&::dwfl_build_id_find_elf) find_elf;
  decltype(&::dwfl_module_getelf) getelf;
  decltype(&::dwfl_module_addrname) addrname;
  decltype(&::dwfl_module_getsrc) getsrc;
  decltype(&::dwfl_lineinfo) lineinfo;
  decltype(&::dwfl_module_addrdie) addrdie;
  decltype(&::dwarf_getscopes) getscopes;
  decltype(&::dwarf_getscopes_die) getscopes_die;
  decltype(&::dwarf_tag) tag;
  decltype(&::dwarf_attr_integrate) attr_integrate;
  decltype(&::dwarf_attr) attr;
  decltype(&::dwarf_formstring) formstring;
  decltype(&::dwarf_formudata) formudata;
  decltype(&::dwarf_getsrcfiles) getsrcfiles;
  decltype(&::dwarf_filesrc) filesrc;

  static const Elfutils *loaded();
};

namespace {

template <class Function>
bool find(void *library, const char *name, Function &into) {
  into = reinterpret_cast<Function>(dlsym(library, name));
  return into != nullptr;
}

}  // namespace

const Elfutils *Elfutils::loaded() {
  static const Elfutils *const found = []() -> const Elfutils * {
    static Elfutils all;
    void *const dw = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    const bool whole = dw != nullptr && find(dw, "dwfl_begin", all.begin) && find(dw, "dwfl_end", all.end) &&
                       find(dw, "dwfl_report_offline", all.report_offline) &&
                       find(dw, "dwfl_report_end", all.report_end) &&
                       find(dw, "dwfl_standard_find_debuginfo", all.find_debuginfo) &&
                       find(dw, "dwfl_offline_section_address", all.section_address) &&
                       find(dw, "dwfl_build_id_find_elf", all.find_elf) && find(dw, "dwfl_module_getelf", all.getelf) &&
                       find(dw, "dwfl_module_addrname", all.addrname) && find(dw, "dwfl_module_getsrc", all.getsrc) &&
                       find(dw, "dwfl_lineinfo", all.lineinfo) && find(dw, "dwfl_module_addrdie", all.addrdie) &&
                       find(dw, "dwarf_getscopes", all.getscopes) &&
                       find(dw, "dwarf_getscopes_die", all.getscopes_die) && find(dw, "dwarf_tag", all.tag) &&
                       find(dw, "dwarf_attr_integrate", all.attr_integrate) && find(dw, "dwarf_attr", all.attr) &&
                       find(dw, "dwarf_formstring", all.formstring) && find(dw, "dwarf_formudata", all.formudata) &&
                       find(dw, "dwarf_getsrcfiles", all.getsrcfiles) && find(dw, "dwarf_filesrc", all.filesrc);
    return whole ? &all : nullptr;
  }();
  return found;
}

namespace {

std::string demangled(const std::string &name) {
  int status = 0;
  char *const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string shown = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return shown;
}

std::string offset_name(const Module &module, std::uint64_t offset) {
  char text[32];
  std::snprintf(text, sizeof(text), "+0x%llx", static_cast<unsigned long long>(offset));
  return module.path.substr(module.path.rfind('/') + 1) + text;
}

// True for a regular file. Opening a FIFO instead would block.
bool is_file(const std::string &path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

class DebugInformation {
 public:
  explicit DebugInformation(const std::string &path) : elfutils_(Elfutils::loaded()) {
    if (elfutils_ == nullptr || path.empty()) {
      return;
    }
    callbacks_.find_elf = elfutils_->find_elf;
    callbacks_.find_debuginfo = elfutils_->find_debuginfo;
    callbacks_.section_address = elfutils_->section_address;
    session_ = elfutils_->begin(&callbacks_);
    if (session_ != nullptr) {
      module_ = elfutils_->report_offline(session_, path.c_str(), path.c_str(), -1);
      elfutils_->report_end(session_, nullptr, nullptr);
    }
    if (module_ != nullptr) {
      elfutils_->getelf(module_, &bias_);
    }
  }
  ~DebugInformation() {
    if (session_ != nullptr) {
      elfutils_->end(session_);
    }
  }
  DebugInformation(const DebugInformation &) = delete;
  DebugInformation &operator=(const DebugInformation &) = delete;

  // The function at `address` of the file, preceded by those inlined there; empty if nothing is known.
  std::vector<StackFrame> at(std::uint64_t address) const {
    std::vector<StackFrame> frames;
    if (module_ == nullptr) {
      return frames;
    }
    const Dwarf_Addr place = address + bias_;
    StackFrame frame;
    set_line(place, frame);
    add_inlined(place, frame, frames);
    if (frame.function.empty()) {  // no function is described there, so the line belongs to a neighbour
      frame.file.clear();
      frame.line = 0;
    }
    if (const char *name = elfutils_->addrname(module_, place); name != nullptr) {
      frame.function = demangled(name);
    }
    if (!frame.function.empty()) {
      frames.push_back(frame);
    }
    return frames;
  }

 private:
  void set_line(Dwarf_Addr place, StackFrame &frame) const {
    Dwfl_Line *const line = elfutils_->getsrc(module_, place);
    int number = 0;
    const char *const file =
        line != nullptr ? elfutils_->lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr) : nullptr;
    if (file != nullptr) {
      frame.file = file;
      frame.line = static_cast<unsigned>(number);
    }
  }
  std::string name_of(Dwarf_Die *die) const {
    Dwarf_Attribute attribute;
    for (const unsigned kind : {DW_AT_linkage_name, DW_AT_name}) {
      if (elfutils_->attr_integrate(die, kind, &attribute) != nullptr) {
        if (const char *name = elfutils_->formstring(&attribute); name != nullptr) {
          return demangled(name);
        }
      }
    }
    return "";
  }
  // Adds the functions that were inlined at `place`. `frame` becomes the place of the outermost one's call.
  void add_inlined(Dwarf_Addr place, StackFrame &frame, std::vector<StackFrame> &frames) const {
    Dwarf_Addr bias = 0;
    Dwarf_Die *const unit = elfutils_->addrdie(module_, place, &bias);
    Dwarf_Die *scopes = nullptr;
    const int count = unit != nullptr ? elfutils_->getscopes(unit, place - bias, &scopes) : 0;
    Dwarf_Die *around = nullptr;
    const int depth = count > 0 ? elfutils_->getscopes_die(&scopes[0], &around) : 0;
    for (int i = 0; i < depth; ++i) {
      const int tag = elfutils_->tag(&around[i]);
      if (tag == DW_TAG_subprogram) {
        frame.function = name_of(&around[i]);
        break;
      }
      if (tag != DW_TAG_inlined_subroutine) {
        continue;
      }
      frame.function = name_of(&around[i]);
      frames.push_back(frame);
      frame = called_from(unit, &around[i]);
    }
    std::free(around);
    std::free(scopes);
  }
  StackFrame called_from(Dwarf_Die *unit, Dwarf_Die *inlined) const {
    StackFrame frame;
    Dwarf_Attribute attribute;
    Dwarf_Word number = 0;
    Dwarf_Files *files = nullptr;
    if (elfutils_->attr(inlined, DW_AT_call_file, &attribute) != nullptr &&
        elfutils_->formudata(&attribute, &number) == 0 && elfutils_->getsrcfiles(unit, &files, nullptr) == 0) {
      if (const char *file = elfutils_->filesrc(files, number, nullptr, nullptr); file != nullptr) {
        frame.file = file;
      }
    }
    if (elfutils_->attr(inlined, DW_AT_call_line, &attribute) != nullptr &&
        elfutils_->formudata(&attribute, &number) == 0) {
      frame.line = static_cast<unsigned>(number);
    }
    return frame;
  }

  const Elfutils *const elfutils_;
  Dwfl_Callbacks callbacks_{};
  Dwfl *session_ = nullptr;
  Dwfl_Module *module_ = nullptr;
  Dwarf_Addr bias_ = 0;
};

class Symbols::File {
 public:
  explicit File(const std::string &path)
      : is_there_(is_file(path)), debug_(is_there_ ? path : ""), symbols_(is_there_ ? path : "") {}

  bool is_there() const { return is_there_; }
  bool is_stripped() const { return symbols_.is_stripped(); }
  bool is(const std::string &build_id) const { return build_id.empty() || symbols_.build_id() == build_id; }
  std::vector<StackFrame> at(std::uint64_t address) const {
    std::vector<StackFrame> frames = debug_.at(address);
    if (frames.empty()) {
      if (const std::string &name = symbols_.function_at(address); !name.empty()) {
        frames.emplace_back();
        frames.back().function = demangled(name);
      }
    }
    return frames;
  }

 private:
  const bool is_there_;
  DebugInformation debug_;
  ElfSymbols symbols_;
};

Symbols::Symbols() = default;
Symbols::~Symbols() = default;
Symbols::Symbols(Symbols &&) noexcept = default;

const std::vector<StackFrame> &Symbols::at(const Module &module, std::uint64_t offset) {
  std::vector<StackFrame> &frames = known_[{module.path + '\0' + module.build_id, offset}];
  if (!frames.empty()) {
    return frames;
  }
  std::unique_ptr<File> &file = files_[module.path];
  if (file == nullptr) {
    file = std::make_unique<File>(module.path);
  }
  if (!module.path.empty() && !file->is_there()) {
    unnamed_[module.path] = "it is not here";
  } else if (!file->is(module.build_id)) {
    unnamed_[module.path] = "it has changed since";
  } else if (offset != 0) {
    frames = file->at(offset - 1);  // an address within the call, which returns to `offset`
    if (frames.empty() && file->is_stripped()) {
      stripped_.insert(module.path);
    }
  }
  if (frames.empty()) {
    frames.emplace_back();
    frames.back().function = offset_name(module, offset);
  }
  return frames;
}

}  // namespace ration::logs
