// Serving a language model with continuous batching: a batch that stays full, key-value tensors with the lifetime of
// their request, activations of one step.
#include "shapes/random.h"
#include "shapes/recorder.h"
#include "shapes/shapes.h"

namespace ration::shapes {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kWeights = 200;
constexpr std::uint64_t kBatch = 24;
constexpr std::uint64_t kTensors = 32;        // of keys and values, for each request
constexpr std::uint64_t kTensorBytes = 4096;  // for each token
constexpr std::uint64_t kHiddenBytes = 8192;
constexpr std::uint64_t kInnerBytes = 4 * kHiddenBytes;
constexpr std::uint64_t kLogitBytes = std::uint64_t{32'000} * 4;
constexpr std::uint64_t kRequests = 3'000;
constexpr std::uint64_t kMostSteps = 40;

struct Request {
  std::vector<Recorder::Id> tensors;
  std::uint64_t steps;  // remaining steps of the request
};

Request admit(Recorder &recorder, Random &random) {
  const std::uint64_t tokens = random.log_uniform(64, 7);
  Request request;
  for (std::uint64_t i = 0; i < kTensors; ++i) request.tensors.push_back(recorder.allocate(tokens * kTensorBytes));
  const Recorder::Id hidden = recorder.allocate(tokens * kHiddenBytes);
  const Recorder::Id inner = recorder.allocate(tokens * kInnerBytes);
  recorder.free(hidden);
  recorder.free(inner);
  request.steps = random.between(1, kMostSteps);
  return request;
}

void decode(Recorder &recorder) {
  const Recorder::Id hidden = recorder.allocate(kBatch * kHiddenBytes);
  const Recorder::Id inner = recorder.allocate(kBatch * kInnerBytes);
  const Recorder::Id logits = recorder.allocate(kBatch * kLogitBytes);
  recorder.free({hidden, inner, logits});
}

}  // namespace

pool::replay::Trace serve(std::uint64_t seed, double length) {
  Random random(seed);
  Recorder recorder;
  for (std::uint64_t i = 0; i < kWeights; ++i) recorder.allocate((32 + i % 7) * kMiB);
  std::vector<Request> batch;
  for (std::uint64_t left = repeated(kRequests, length); left > 0;) {
    for (; batch.size() < kBatch && left > 0; --left) batch.push_back(admit(recorder, random));
    for (std::size_t i = 0; i < batch.size();) {
      if (--batch[i].steps > 0) {
        ++i;
        continue;
      }
      recorder.free(batch[i].tensors);
      if (i + 1 < batch.size()) batch[i] = std::move(batch.back());
      batch.pop_back();
    }
    decode(recorder);
  }
  return recorder.take();
}

}  // namespace ration::shapes
