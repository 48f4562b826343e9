// Tables of calls and failure modes, with the result code of each and its effect on the outputs: `untouched`, `zeroed`
// or `changed`. A child process plays a table, so that a call that kills the child costs one row; the next child
// continues after that row. Layer: question.h, child.h. Threads: rows run on the child's main thread, or on the thread
// whose context is destroyed.
#pragma once
#include <cstdlib>
#include <map>

#include "tests/gpu/questions/child.h"
#include "tests/gpu/questions/orphan.h"
#include "tests/gpu/questions/outputs.h"
#include "tests/gpu/questions/question.h"

namespace question {

// The circumstances under which a row is played, apart from its arguments.
enum class When {
  kPlain,
  kNoContext,           // no context is current
  kDestroyedContext,    // the current context was destroyed by another thread
  kCapture,             // this thread captures another stream, in mode GLOBAL
  kLostCapture,         // that capture has been invalidated
  kCapturedStream,      // the call's own stream is captured
  kLostCapturedStream,  // the call's own stream is captured, and that capture has been invalidated
};

inline const char *suffix(When when) {
  switch (when) {
    case When::kPlain:
      return "";
    case When::kNoContext:
      return "_without_context";
    case When::kDestroyedContext:
      return "_in_a_destroyed_context";
    case When::kCapture:
      return "_in_a_capture";
    case When::kLostCapture:
      return "_in_a_lost_capture";
    case When::kCapturedStream:
      return "_in_the_captured_stream";
    case When::kLostCapturedStream:
      return "_in_the_stream_of_a_lost_capture";
  }
  return "";
}

// The further circumstances under which a row is played: none, those of any call, or also those of a stream.
enum class Crossed { kNot, kCalls, kStreams };

// The state that every table needs. A table's scene derives from this class and adds the objects that its rows use.
struct Stage {
  Stage() {
    must(cuCtxGetCurrent(&context));
    must(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&past, CU_EVENT_DISABLE_TIMING));
    must(cuEventRecord(past, idle));
    must(cuStreamSynchronize(idle));
    stream = idle;
    std::size_t free = 0, total = 0;
    must(cuMemGetInfo(&free, &total));
    too_much = (total / (2 * kMiB) + 512) * (2 * kMiB);
  }

  CUcontext context = nullptr;
  CUstream idle = nullptr;
  CUstream stream = nullptr;  // the stream that a row uses
  CUevent past = nullptr;
  std::size_t too_much = 0;  // more bytes than the device has
};

template <class Scene>
struct Row {
  std::string call, way;
  Crossed crossed;
  std::function<CUresult(Scene &, Outputs &)> act;
};

template <class Scene>
using Table = std::vector<Row<Scene>>;
template <class Scene>
using Tables = std::map<std::string, Table<Scene>>;

constexpr char kBroken[] = "broken";  // what a child says of its context before it ends

// One row under one circumstance.
template <class Scene>
struct Trial {
  const Row<Scene> *row;
  When when;
  std::string name() const { return row->call + "." + row->way + suffix(when); }
};

template <class Scene>
std::vector<Trial<Scene>> trials(const Table<Scene> &table) {
  std::vector<Trial<Scene>> all;
  for (const Row<Scene> &row : table) {
    std::vector<When> whens = {When::kPlain};
    if (row.crossed != Crossed::kNot) {
      whens.insert(whens.end(), {When::kNoContext, When::kDestroyedContext, When::kCapture, When::kLostCapture});
    }
    if (row.crossed == Crossed::kStreams) {
      whens.insert(whens.end(), {When::kCapturedStream, When::kLostCapturedStream});
    }
    for (const When when : whens) all.push_back({&row, when});
  }
  return all;
}

// Plays trials in the child.
template <class Scene>
class Player {
 public:
  std::string play(const Trial<Scene> &trial) {
    switch (trial.when) {
      case When::kPlain:
        return call(trial, scene_.context);
      case When::kNoContext:
        return without_context(trial);
      case When::kDestroyedContext:
        return orphaned(trial);
      default:
        return capturing(trial);
    }
  }

  // True if the context has an error that every later call would return.
  bool is_broken() const {
    const CUresult code = cuStreamQuery(scene_.idle);
    return code != CUDA_SUCCESS && code != CUDA_ERROR_NOT_READY;
  }

 private:
  // Lines, each with a key and a value. `expected`: the context that should be current afterwards.
  std::string call(const Trial<Scene> &trial, CUcontext expected) {
    Outputs outputs;
    std::string lines;
    try {
      const CUresult code = trial.row->act(scene_, outputs);
      lines = "code " + std::to_string(code) + "\n" + outputs.lines();
    } catch (const Stop &stop) {
      return "skipped " + stop.reason + "\n";
    }
    CUcontext now = nullptr;
    cuCtxGetCurrent(&now);
    if (now != expected) {
      lines += "current_context changed\n";
      cuCtxSetCurrent(expected);
    }
    return lines;
  }
  std::string without_context(const Trial<Scene> &trial) {
    must(cuCtxSetCurrent(nullptr));
    const std::string lines = call(trial, nullptr);
    must(cuCtxSetCurrent(scene_.context));
    return lines;
  }
  std::string orphaned(const Trial<Scene> &trial) {
    if (orphan_ == nullptr) orphan_ = std::make_unique<Orphan>();
    std::string lines;
    orphan_->run([&] {
      CUcontext dead = nullptr;
      cuCtxGetCurrent(&dead);
      lines = call(trial, dead);
    });
    return lines;
  }
  std::string capturing(const Trial<Scene> &trial) {
    const bool lost = trial.when == When::kLostCapture || trial.when == When::kLostCapturedStream;
    const bool own = trial.when == When::kCapturedStream || trial.when == When::kLostCapturedStream;
    CUstream captured = nullptr;
    must(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    must(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
    if (lost) cuEventQuery(scene_.past);
    scene_.stream = own ? captured : scene_.idle;
    std::string lines = call(trial, scene_.context);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuStreamIsCapturing(captured, &status);
    if (!lost) lines += std::string("capture ") + (status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? "kept\n" : "lost\n");
    CUgraph graph = nullptr;
    if (cuStreamEndCapture(captured, &graph) == CUDA_SUCCESS && graph != nullptr) cuGraphDestroy(graph);
    scene_.stream = scene_.idle;
    cuStreamDestroy(captured);
    return lines;
  }

  Scene scene_;
  std::unique_ptr<Orphan> orphan_;
};

// The circumstances whose rows have killed too many processes, one bit for each. Their other rows are not played.
class Deaths {
 public:
  void add(When when) {
    ++all_;
    if (when != When::kPlain) ++of_[when];
  }
  unsigned all() const { return all_; }
  unsigned avoided() const {
    unsigned bits = 0;
    for (const auto &[when, count] : of_) bits |= count >= kEachAtMost ? bit(when) : 0u;
    return bits;
  }
  static unsigned bit(When when) { return 1u << static_cast<unsigned>(when); }

 private:
  static constexpr unsigned kEachAtMost = 3;
  unsigned all_ = 0;
  std::map<When, unsigned> of_;
};

// The parent's part. Starts a child to play the table, and another child after each row that kills one.
template <class Scene>
void ask(Test &test, const Table<Scene> &table) {
  constexpr unsigned kDeathsAtMost = 16;
  const auto all = trials(table);
  Deaths deaths;
  for (std::size_t next = 0; next < all.size() && deaths.all() <= kDeathsAtMost;) {
    Child child({test.name(), std::to_string(next), std::to_string(deaths.avoided())});
    std::string lines;
    for (int patience_ms = 15'000; next < all.size(); ++next, patience_ms = 3'000) {  // because a driver starts slowly
      lines = receive(child.socket(), patience_ms).text;
      if (lines.empty() || lines == kBroken || lines.rfind("stopped", 0) == 0) break;
      record(test, all[next].name(), lines);
    }
    if (next == all.size()) break;
    if (next == 0 && !lines.empty()) throw Stop{true, lines};
    const bool broken = lines == kBroken;
    const Trial<Scene> &last = all[broken ? next - 1 : next];
    const int signal = child.end();
    if (lines.empty()) {
      test.number(last.name() + ".signal", signal);
    } else {
      test.text(last.name() + (broken ? ".context" : ".stopped"), lines);
    }
    deaths.add(last.when);
    if (!broken) ++next;
  }
  test.number("trials", all.size());
  test.number("deaths", deaths.all());
  if (deaths.all() > kDeathsAtMost) return test.fail("too many calls killed their process");
  test.note("Codes; untouched, zeroed or changed; signal: what killed the process, 9 where the call did not return.");
}

// The main() of a program that plays tables; each test has the name of its table.
template <class Scene>
int run_tables(int count, char **arguments, const Tables<Scene> &(*tables)(), std::initializer_list<Case> cases) {
  if (count < 4) return run(cases, Driver::kUntouched);
  return run_child([&] {
    Player<Scene> player;
    const auto avoided = static_cast<unsigned>(std::atol(arguments[3]));
    const auto all = trials(tables().at(arguments[1]));
    for (auto next = static_cast<std::size_t>(std::atol(arguments[2])); next < all.size(); ++next) {
      const bool avoid = (avoided & Deaths::bit(all[next].when)) != 0;
      send(kParent, avoid ? "skipped others like it killed their process\n" : player.play(all[next]));
      if (player.is_broken()) return send(kParent, kBroken);
    }
  });
}

}  // namespace question
