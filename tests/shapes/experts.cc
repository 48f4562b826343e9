// Training a mixture of experts: a router sends every token to a few of many experts. The sizes of most activations
// differ in every layer and step, but have the same sum.
#include <algorithm>
#include <array>

#include "shapes/random.h"
#include "shapes/recorder.h"
#include "shapes/shapes.h"

namespace ration::shapes {
namespace {

using Id = Recorder::Id;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLayers = 12;
constexpr std::uint64_t kHidden = 2048;
constexpr std::uint64_t kInner = 1408;
constexpr std::uint64_t kExperts = 32;
constexpr std::uint64_t kChosen = 4;  // experts for each token
constexpr std::uint64_t kVocabulary = 102'400;
constexpr std::uint64_t kTokens = 8192;
constexpr std::uint64_t kSteps = 16;
constexpr std::uint64_t kHiddenBytes = kTokens * kHidden * 2;
constexpr std::uint64_t kMatrixBytes = kHidden * kInner * 2;
constexpr std::uint64_t kExpertMatrices = 3;  // gate, up, down

struct ExpertActivations {
  Id input, gate, up, product;
};

struct LayerActivations {
  Id normal, qkv, attended, sum, probabilities, routes;
  std::vector<std::uint64_t> loads;  // tokens by expert
  std::vector<ExpertActivations> experts;
  Id output;
};

class Training {
 public:
  explicit Training(std::uint64_t seed) : random_(seed) {
    weights_ = {kVocabulary * kHidden * 2};
    for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
      weights_.insert(weights_.end(), {3 * kHidden * kHidden * 2, kHidden * kHidden * 2, kExperts * kHidden * 2});
      weights_.insert(weights_.end(), kExperts * kExpertMatrices, kMatrixBytes);
    }
    for (const std::uint64_t bytes : weights_) recorder_.allocate(bytes);
    recorder_.allocate(32 * kMiB);  // a library's workspace
    for (auto &popularity : popularities_) {
      for (double &share : popularity) share = 0.2 + random_.fraction();
    }
  }

  pool::replay::Trace run(std::uint64_t steps) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      forward();
      backward();
      if (step == 0) {
        for (const std::uint64_t bytes : weights_) {
          recorder_.allocate(2 * bytes);
          recorder_.allocate(2 * bytes);
        }
      }
      for (std::size_t i = 0; i < weights_.size(); ++i) {
        const Id update = recorder_.allocate(2 * weights_[i]);
        const Id divisor = recorder_.allocate(2 * weights_[i]);
        // The backward pass made the gradients from the last layer to the first, except for the shared embedding.
        recorder_.free({update, divisor, gradients_[i == 0 ? 0 : weights_.size() - i]});
      }
      gradients_.clear();
    }
    return recorder_.take();
  }

 private:
  Id hidden() { return recorder_.allocate(kHiddenBytes); }
  void gradient(std::uint64_t bytes) { gradients_.push_back(recorder_.allocate(bytes)); }

  // The popularity of experts drifts over the steps; the tokens of one batch scatter around it.
  std::vector<std::uint64_t> route(std::uint64_t layer) {
    std::array<double, kExperts> shares{};
    double sum = 0;
    for (std::uint64_t i = 0; i < kExperts; ++i) {
      double &popularity = popularities_[layer][i];
      popularity = std::clamp(popularity + 0.2 * (random_.fraction() - 0.5), 0.05, 2.0);
      sum += shares[i] = popularity * (0.5 + random_.fraction());
    }
    std::vector<std::uint64_t> loads;
    for (const double share : shares) {
      loads.push_back(1 + static_cast<std::uint64_t>(share / sum * static_cast<double>(kTokens * kChosen)));
    }
    return loads;
  }

  void forward() {
    input_ = hidden();
    for (std::uint64_t number = 0; number < kLayers; ++number) {
      LayerActivations &layer = layers_[number];
      layer.normal = hidden();
      layer.qkv = recorder_.allocate(3 * kHiddenBytes);
      recorder_.pass(random_.between(4, 7) * kMiB);
      layer.attended = hidden();
      layer.sum = hidden();
      layer.probabilities = recorder_.allocate(kTokens * kExperts * 4);
      layer.routes = recorder_.allocate(kTokens * kChosen * 8);
      recorder_.pass(kTokens * kChosen * 16);  // workspace for sorting tokens by expert
      layer.loads = route(number);
      layer.experts.clear();
      std::vector<Id> outputs;
      for (const std::uint64_t tokens : layer.loads) {
        ExpertActivations expert{};
        expert.input = recorder_.allocate(tokens * kHidden * 2);
        expert.gate = recorder_.allocate(tokens * kInner * 2);
        expert.up = recorder_.allocate(tokens * kInner * 2);
        expert.product = recorder_.allocate(tokens * kInner * 2);
        outputs.push_back(recorder_.allocate(tokens * kHidden * 2));
        layer.experts.push_back(expert);
      }
      layer.output = hidden();
      recorder_.free(outputs);
    }
  }

  void backward() {
    const Id logits = recorder_.allocate(kTokens * kVocabulary * 2);
    const Id losses = recorder_.allocate(kTokens * kVocabulary * 4);
    gradient(weights_[0]);
    Id flow = hidden();
    recorder_.free({losses, logits});
    for (std::uint64_t number = kLayers; number-- > 0;) flow = backward_layer(layers_[number], flow);
    recorder_.free({flow, input_});
  }

  Id backward_layer(LayerActivations &layer, Id flow) {
    for (std::uint64_t i = kExperts; i-- > 0;) {
      const std::uint64_t tokens = layer.loads[i];
      const ExpertActivations &expert = layer.experts[i];
      const Id output = recorder_.allocate(tokens * kHidden * 2);
      gradient(kMatrixBytes);
      const Id product = recorder_.allocate(tokens * kInner * 2);
      recorder_.free({output, expert.product});
      const Id gate = recorder_.allocate(tokens * kInner * 2);
      const Id up = recorder_.allocate(tokens * kInner * 2);
      recorder_.free({product, expert.gate, expert.up});
      gradient(kMatrixBytes);
      gradient(kMatrixBytes);
      recorder_.free({gate, up, expert.input});
    }
    gradient(kExperts * kHidden * 2);
    recorder_.free({layer.routes, layer.probabilities, layer.output});
    const Id sum = hidden();
    recorder_.free({flow, layer.sum});
    gradient(kHidden * kHidden * 2);
    const Id attended = hidden();
    recorder_.free(layer.attended);
    const Id qkv = recorder_.allocate(3 * kHiddenBytes);
    recorder_.free({attended, layer.qkv});
    gradient(3 * kHidden * kHidden * 2);
    const Id input = hidden();
    recorder_.free({qkv, sum, layer.normal});
    return input;
  }

  Random random_;
  Recorder recorder_;
  std::vector<std::uint64_t> weights_;  // bytes
  std::vector<Id> gradients_;
  std::array<LayerActivations, kLayers> layers_;
  std::array<std::array<double, kExperts>, kLayers> popularities_{};
  Id input_ = 0;
};

}  // namespace

pool::replay::Trace experts(std::uint64_t seed, double length) {
  return Training(seed).run(repeated(kSteps, length));
}

}  // namespace ration::shapes
