// Training a transformer: permanent weights, gradients and two moments of Adam, activations that live from the forward
// to the backward pass, workspaces that live for a call or two.
#include <algorithm>
#include <array>

#include "shapes/random.h"
#include "shapes/recorder.h"
#include "shapes/shapes.h"

namespace ration::shapes {
namespace {

using Id = Recorder::Id;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLayers = 32;
constexpr std::uint64_t kHidden = 2560;
constexpr std::uint64_t kHeads = 32;
constexpr std::uint64_t kVocabulary = 50'304;
constexpr std::uint64_t kPositions = 2048;
constexpr std::uint64_t kSteps = 40;
constexpr std::uint64_t kStepsOfABatch = 4;
constexpr std::uint64_t kMostTokens = 8192;
constexpr std::uint64_t kStepsOfAnEvaluation = 10;
constexpr std::uint64_t kLibraryWorkspace = 32 * kMiB;
constexpr std::uint64_t kWorkspace = 4 * kMiB;

// Of a layer, in elements, in the order of the model: norm, attention in and out, norm, the two halves of the MLP.
enum Weight { kNorm1, kNorm1Bias, kQkv, kQkvBias, kOut, kOutBias, kNorm2, kNorm2Bias, kUp, kUpBias, kDown, kDownBias };
constexpr std::array<std::uint64_t, 12> kLayerWeights{
    kHidden, kHidden, 3 * kHidden *kHidden, 3 * kHidden, kHidden *kHidden,     kHidden,
    kHidden, kHidden, 4 * kHidden *kHidden, 4 * kHidden, 4 * kHidden *kHidden, kHidden};

struct LayerActivations {
  Id norm1, mean1, variance1, query, key, value, statistics, attended, dropped1, sum1;
  Id norm2, mean2, variance2, up, activated, dropped2, sum2;
};

class Training {
 public:
  explicit Training(std::uint64_t seed) : random_(seed) {
    weights_ = {kVocabulary * kHidden, kPositions * kHidden};
    for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
      weights_.insert(weights_.end(), kLayerWeights.begin(), kLayerWeights.end());
    }
    weights_.insert(weights_.end(), {kHidden, kHidden});
    for (const std::uint64_t elements : weights_) recorder_.allocate(2 * elements);
    recorder_.allocate(kLibraryWorkspace);
    gradients_.resize(weights_.size());
  }

  pool::replay::Trace run(std::uint64_t steps) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      if (step % kStepsOfABatch == 0) draw_batch();
      forward();
      backward();
      if (step == 0) make_moments();
      clip_gradients();
      optimize();
      if (step % kStepsOfAnEvaluation == kStepsOfAnEvaluation - 1) evaluate();
    }
    return recorder_.take();
  }

 private:
  void draw_batch() {
    sequence_ = 128 * random_.between(4, 16);
    batch_ = kMostTokens / sequence_;
    tokens_ = batch_ * sequence_;
    hidden_ = tokens_ * kHidden * 2;
  }
  Id hidden() { return recorder_.allocate(hidden_); }
  Id row() { return recorder_.allocate(tokens_ * 4); }
  static std::size_t weight(std::uint64_t layer, Weight which) { return 2 + layer * kLayerWeights.size() + which; }
  void gradient(std::size_t weight) { gradients_[weight] = recorder_.allocate(2 * weights_[weight]); }

  void forward() {
    inputs_ = {recorder_.allocate(tokens_ * 8), recorder_.allocate(tokens_ * 8),
               recorder_.allocate(batch_ * sequence_ * sequence_), hidden()};
    for (LayerActivations &layer : layers_) forward_layer(layer);
    last_norm_ = hidden();
  }

  void forward_layer(LayerActivations &layer) {
    layer.norm1 = hidden();
    layer.mean1 = row();
    layer.variance1 = row();
    const Id qkv = recorder_.allocate(3 * hidden_);
    recorder_.pass(random_.between(4, 7) * kMiB);
    layer.query = hidden();
    layer.key = hidden();
    layer.value = hidden();
    recorder_.free(qkv);
    layer.statistics = recorder_.allocate(tokens_ * kHeads * 4);
    layer.attended = hidden();
    Id projected = hidden();
    layer.dropped1 = recorder_.allocate(hidden_ / 2);
    layer.sum1 = hidden();
    recorder_.free(projected);
    layer.norm2 = hidden();
    layer.mean2 = row();
    layer.variance2 = row();
    layer.up = recorder_.allocate(4 * hidden_);
    layer.activated = recorder_.allocate(4 * hidden_);
    const Id workspace = recorder_.allocate(kWorkspace);
    projected = hidden();
    recorder_.free(workspace);
    layer.dropped2 = recorder_.allocate(hidden_ / 2);
    layer.sum2 = hidden();
    recorder_.free(projected);
  }

  void backward() {
    const std::uint64_t logit_bytes = tokens_ * kVocabulary * 2;
    const Id logits = recorder_.allocate(logit_bytes);
    const Id wide_logits = recorder_.allocate(2 * logit_bytes);
    const Id normalizers = row();
    const Id loss = recorder_.allocate(4);
    const Id logit_gradient = recorder_.allocate(logit_bytes);
    recorder_.free({wide_logits, logits, normalizers});
    gradient(0);
    Id flow = hidden();
    recorder_.free({logit_gradient, last_norm_});
    gradient(weights_.size() - 2);
    gradient(weights_.size() - 1);
    for (std::uint64_t layer = kLayers; layer-- > 0;) flow = backward_layer(layer, flow);
    recorder_.free(inputs_[3]);
    gradient(1);
    recorder_.free({flow, layers_[kLayers - 1].sum2, loss});
    recorder_.free({inputs_[0], inputs_[1], inputs_[2]});
  }

  // Takes the gradient of the layer's output, returns that of its input.
  Id backward_layer(std::uint64_t number, Id flow) {
    const LayerActivations &layer = layers_[number];
    const Id wide = recorder_.allocate(4 * hidden_);
    Id workspace = recorder_.allocate(kWorkspace);
    gradient(weight(number, kDown));
    gradient(weight(number, kDownBias));
    recorder_.free({workspace, layer.dropped2, layer.activated});
    const Id narrow = recorder_.allocate(4 * hidden_);
    recorder_.free({wide, layer.up});
    Id inner = hidden();
    workspace = recorder_.allocate(kWorkspace);
    gradient(weight(number, kUp));
    gradient(weight(number, kUpBias));
    recorder_.free({workspace, narrow});
    gradient(weight(number, kNorm2));
    gradient(weight(number, kNorm2Bias));
    const Id normal = hidden();
    recorder_.free({inner, layer.variance2, layer.mean2, layer.norm2, layer.sum1});
    const Id sum = hidden();
    recorder_.free({flow, normal, layer.dropped1});
    inner = hidden();
    gradient(weight(number, kOut));
    gradient(weight(number, kOutBias));
    recorder_.free(layer.attended);
    const Id query = hidden();
    const Id key = hidden();
    const Id value = hidden();
    recorder_.pass(2 * hidden_);
    recorder_.free({inner, layer.statistics, layer.value, layer.key, layer.query});
    const Id qkv = recorder_.allocate(3 * hidden_);
    recorder_.free({query, key, value});
    gradient(weight(number, kQkv));
    gradient(weight(number, kQkvBias));
    inner = hidden();
    recorder_.free(qkv);
    gradient(weight(number, kNorm1));
    gradient(weight(number, kNorm1Bias));
    recorder_.free({layer.variance1, layer.mean1, layer.norm1});
    const Id input = hidden();
    recorder_.free({inner, sum});
    // The input is the output of the layer below, and this was its last use.
    if (number > 0) recorder_.free(layers_[number - 1].sum2);
    return input;
  }

  void make_moments() {
    for (const std::uint64_t elements : weights_) {
      recorder_.allocate(4 * elements);
      recorder_.allocate(4 * elements);
    }
  }

  void clip_gradients() {
    std::vector<Id> norms;
    for (std::size_t i = 0; i < weights_.size(); ++i) norms.push_back(recorder_.allocate(4));
    norms.push_back(recorder_.allocate(4 * weights_.size()));
    recorder_.free(norms);
  }

  void optimize() {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const Id update = recorder_.allocate(4 * weights_[i]);
      const Id divisor = recorder_.allocate(4 * weights_[i]);
      recorder_.free({update, divisor, gradients_[i]});
    }
  }

  void evaluate() {
    const Id logits = recorder_.allocate(tokens_ * kVocabulary * 2);
    const Id best = recorder_.allocate(tokens_ * 8);
    recorder_.free({logits, best});
  }

  Random random_;
  Recorder recorder_;
  std::vector<std::uint64_t> weights_;  // elements; two bytes each, their moments four
  std::vector<Id> gradients_;
  std::array<LayerActivations, kLayers> layers_{};
  std::array<Id, 4> inputs_{};
  Id last_norm_ = 0;
  std::uint64_t sequence_ = 0, batch_ = 0, tokens_ = 0;
  std::uint64_t hidden_ = 0;  // bytes of one hidden state for every token
};

}  // namespace

pool::replay::Trace train(std::uint64_t seed, double length) {
  return Training(seed).run(repeated(kSteps, length));
}

}  // namespace ration::shapes
