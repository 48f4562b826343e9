#include "events/python_frames.h"

#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "events/loaded_modules.h"

namespace ration::events {

namespace {

constexpr int kNone = -1;

// Offsets in the structures of a release build, in bytes. Those of 3.9 to 3.12 are from offsetof() on their headers;
// later versions publish theirs (_Py_DebugOffsets).
struct Layout {
  int thread_frame;  // in the thread's state: the innermost frame, or the structure that points to it
  int cframe_frame;  // in that structure of 3.11 and 3.12; kNone: there is none
  int previous, code, instruction;
  int owner;         // kNone: every frame is a Python call
  int lasti_factor;  // factor of `instruction`, if that is a number; 0: it is an address
  int filename, name;
  int code_start;  // used if `instruction` is an address
};

constexpr int kOwnedByC = 3;  // not a Python call, but a point at which C called the interpreter
constexpr std::size_t kTypeAt = 8;
constexpr Layout kPython39 = {24, kNone, 24, 32, 104, kNone, 1, 104, 112, 0};
constexpr Layout kPython310 = {24, kNone, 24, 32, 96, kNone, 2, 104, 112, 0};
constexpr Layout kPython311 = {56, 8, 48, 32, 56, 69, 0, 112, 128, 184};
constexpr Layout kPython312 = {56, 0, 8, 0, 56, 70, 0, 112, 128, 192};

bool read_memory(std::uintptr_t from, void *into, std::size_t bytes) {
  const iovec own{into, bytes};
  const iovec other{reinterpret_cast<void *>(from), bytes};
  return process_vm_readv(getpid(), &own, 1, &other, 1, 0) == static_cast<ssize_t>(bytes);
}

template <class Value>
bool read_value(std::uintptr_t from, Value &into) {
  return read_memory(from, &into, sizeof(into));
}

template <std::size_t kBytes>
std::uint64_t word_in(const std::array<char, kBytes> &bytes, int at) {
  std::uint64_t word = 0;
  if (at >= 0 && static_cast<std::size_t>(at) + sizeof(word) <= kBytes) {
    std::memcpy(&word, bytes.data() + at, sizeof(word));
  }
  return word;
}

template <class Function>
bool find(void *handle, const char *name, Function &into) {
  into = reinterpret_cast<Function>(dlsym(handle, name));
  return into != nullptr;
}

// Reads the layout from _Py_DebugOffsets. `thread`, `frame` and `code` are the positions there, in words, of the
// offsets in a thread's state, a frame and a code object; in 3.14 more words come before them. The first words are a
// mark, the version, and whether the build has no GIL.
std::optional<Layout> described_layout(std::uintptr_t runtime, int minor) {
  constexpr std::size_t kWords = 64;
  std::array<std::uint64_t, kWords> words;
  const bool is_13 = minor == 13;
  const std::size_t thread = is_13 ? 19 : 22;
  const std::size_t frame = is_13 ? 28 : 31;
  const std::size_t code = is_13 ? 34 : 39;
  if (!read_value(runtime, words) || std::memcmp(words.data(), "xdebugpy", 8) != 0 || words[2] != 0) {
    return std::nullopt;
  }
  constexpr std::uint64_t kMost = 4096;
  if (std::any_of(words.begin() + static_cast<std::ptrdiff_t>(frame), words.begin() + 49,
                  [](std::uint64_t word) { return word > kMost; })) {
    return std::nullopt;
  }
  const auto at = [&](std::size_t word) { return static_cast<int>(words[word]); };
  return Layout{at(thread + 4), kNone, at(frame + 1), at(frame + 2), at(frame + 3),
                at(frame + 5),  0,     at(code + 1),  at(code + 3),  at(code + 9)};
}

struct Texts {
  std::string function, file;
};

void add_utf8(std::string &text, std::uint32_t character) {
  const auto byte = [&](std::uint32_t value) { text += static_cast<char>(value); };
  if (character < 0x80U) {
    byte(character);
  } else if (character < 0x800U) {
    byte(0xc0U | character >> 6U);
    byte(0x80U | (character & 0x3fU));
  } else if (character < 0x10000U) {
    byte(0xe0U | character >> 12U);
    byte(0x80U | (character >> 6U & 0x3fU));
    byte(0x80U | (character & 0x3fU));
  } else {
    byte(0xf0U | character >> 18U);
    byte(0x80U | (character >> 12U & 0x3fU));
    byte(0x80U | (character >> 6U & 0x3fU));
    byte(0x80U | (character & 0x3fU));
  }
}

std::optional<Layout> layout_of(int minor, void *handle) {
  void *runtime = nullptr;
  switch (minor) {
    case 9:
      return kPython39;
    case 10:
      return kPython310;
    case 11:
      return kPython311;
    case 12:
      return kPython312;
    case 13:
    case 14:
      return find(handle, "_PyRuntime", runtime) ? described_layout(reinterpret_cast<std::uintptr_t>(runtime), minor)
                                                 : std::nullopt;
    default:
      return std::nullopt;
  }
}

// The minor version of a Python 3; 0: it is not Python 3.
int minor_version(std::string_view text) {
  int minor = 0;
  if (text.substr(0, 2) == "3.") {
    std::from_chars(text.data() + 2, text.data() + text.size(), minor);
  }
  return minor;
}

}  // namespace

class PythonFrames::Interpreter {
 public:
  // `handle`: a dlopen handle through which the interpreter's functions are found. False: its calls cannot be read.
  bool open(void *handle, const LoadedModules &modules) {
    const char *(*version)() = nullptr;
    if (!find(handle, "Py_GetVersion", version)) {
      return false;
    }
    const std::optional<Layout> layout = layout_of(minor_version(version()), handle);
    if (!layout || !find(handle, "PyGILState_GetThisThreadState", this_thread_state_) ||
        !find(handle, "PyCode_Addr2Line", line_of_) || !find(handle, "PyCode_Type", code_type_) ||
        !find(handle, "PyUnicode_Type", string_type_) || !find(handle, "PyUnicode_GetLength", length_) ||
        !find(handle, "PyUnicode_ReadChar", character_)) {
      return false;
    }
    layout_ = *layout;
    const LoadedModules::Module *module = modules.find(reinterpret_cast<std::uintptr_t>(this_thread_state_));
    if (module != nullptr) {
      start_ = module->start;
      end_ = module->end;
    }
    return module != nullptr;
  }

  bool has(std::uintptr_t code) const { return start_ <= code && code < end_; }

  // The innermost frame of the calling thread; 0: none.
  std::uintptr_t innermost() const {
    const auto state = reinterpret_cast<std::uintptr_t>(this_thread_state_());
    std::uintptr_t frame = 0;
    const bool found =
        state != 0 && read_value(state + static_cast<std::uintptr_t>(layout_.thread_frame), frame) &&
        (layout_.cframe_frame == kNone || read_value(frame + static_cast<std::uintptr_t>(layout_.cframe_frame), frame));
    return found ? frame : 0;
  }

  // Adds the call of `frame`, if it is a Python call, and sets `frame` to that of its caller. False: it cannot be read.
  bool next(std::uintptr_t &frame, std::vector<PythonFrame> &frames) {
    std::array<char, 112> of_frame;
    if (!read_value(frame, of_frame)) {
      return false;
    }
    frame = word_in(of_frame, layout_.previous);
    if (layout_.owner != kNone && of_frame[static_cast<std::size_t>(layout_.owner)] == kOwnedByC) {
      return true;
    }
    constexpr std::uintptr_t kMarks = 7;  // 3.14 uses the last bits of pointers as marks
    const std::uintptr_t code = word_in(of_frame, layout_.code) & ~kMarks;
    Texts texts;
    if (!texts_of(code, texts)) {
      return false;
    }
    const std::uint64_t instruction = word_in(of_frame, layout_.instruction);
    const int offset = layout_.lasti_factor != 0
                           ? static_cast<int>(instruction) * layout_.lasti_factor
                           : static_cast<int>(instruction - code - static_cast<std::uintptr_t>(layout_.code_start));
    const int line = line_of_(reinterpret_cast<void *>(code), offset);
    frames.push_back({std::move(texts.function), std::move(texts.file), static_cast<unsigned>(std::max(line, 0))});
    return true;
  }

 private:
  // Reads the texts each time, because once a code object is freed, another may get its address or that of its strings.
  bool texts_of(std::uintptr_t code, Texts &texts) const {
    std::array<char, 136> of_code;
    if (!read_value(code, of_code) || word_in(of_code, kTypeAt) != reinterpret_cast<std::uintptr_t>(code_type_)) {
      return false;
    }
    return read_text(word_in(of_code, layout_.filename), texts.file) &&
           read_text(word_in(of_code, layout_.name), texts.function);
  }

  // An existing frame keeps its code object alive, and the code object its strings.
  bool read_text(std::uintptr_t string, std::string &text) const {
    constexpr std::ptrdiff_t kLongest = 1000;  // so that a record fits into a page of the log
    const void *type = nullptr;
    if (string == 0 || !read_value(string + kTypeAt, type) || type != string_type_) {
      return false;
    }
    const std::ptrdiff_t length = length_(reinterpret_cast<void *>(string));
    for (std::ptrdiff_t i = 0; i < std::min(length, kLongest); ++i) {
      add_utf8(text, character_(reinterpret_cast<void *>(string), i));
    }
    return true;
  }

  Layout layout_{};
  std::uintptr_t start_ = 0, end_ = 0;
  void *(*this_thread_state_)() = nullptr;
  int (*line_of_)(void *code, int offset) = nullptr;
  const void *code_type_ = nullptr;
  const void *string_type_ = nullptr;
  std::ptrdiff_t (*length_)(void *string) = nullptr;
  std::uint32_t (*character_)(void *string, std::ptrdiff_t place) = nullptr;
};

void PythonFrames::find_interpreter(const LoadedModules &modules) {
  if (interpreter_ != nullptr) {
    return;
  }
  auto found = std::make_shared<Interpreter>();
  bool is_open = found->open(RTLD_DEFAULT, modules);
  for (auto each = modules.all().begin(); !is_open && each != modules.all().end(); ++each) {
    if (each->path.find("/libpython3") != std::string::npos) {  // the program embeds Python
      void *const handle = dlopen(each->path.c_str(), RTLD_NOW | RTLD_NOLOAD);
      is_open = handle != nullptr && found->open(handle, modules);
    }
  }
  if (is_open) {
    interpreter_ = std::move(found);
  }
}

bool PythonFrames::is_interpreter(std::uintptr_t code) const {
  return interpreter_ != nullptr && interpreter_->has(code);
}

bool PythonFrames::read(std::vector<PythonFrame> &frames) const {
  if (interpreter_ == nullptr) {
    return false;
  }
  std::uintptr_t frame = interpreter_->innermost();
  while (frame != 0 && frames.size() < kDeepest) {
    if (!interpreter_->next(frame, frames)) {
      frames.clear();  // no frames rather than an incomplete stack
      return false;
    }
  }
  return !frames.empty();
}

}  // namespace ration::events
